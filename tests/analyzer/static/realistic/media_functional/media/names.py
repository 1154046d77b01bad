"""Names of services, endpoints and queries, in one place."""

STORE = "Store"
TRANSCODER = "Transcoder"
SEARCH = "Search"

API = "/v1"


def endpoint(name: str) -> str:
    """Return the path of an endpoint of the current version."""
    return f"{API}/{name}/"


BLOB = endpoint("blob")
SIGN = endpoint("sign")
TRANSCODE = endpoint("transcode")
THUMBNAIL = endpoint("thumbnail")
INDEX = endpoint("index")

DATABASE = "media"
QUERIES = {"item": "item_by_id", "owner": "items_of_owner", "tags": "tags_of_item"}

SIZES = (64, 256, 1024)
FORMATS = {"video": ("mp4", "webm"), "audio": ("mp3",)}
