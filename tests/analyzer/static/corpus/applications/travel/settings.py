"""Switches, which a local file may override."""

STRICT_RISK = False
NOTIFY = True
REGIONS = ["eu"]

try:
    import travel_local_settings as local
except ImportError:
    local = None
else:
    NOTIFY = False

if local is None:
    STRICT_RISK = not STRICT_RISK
    REGIONS.append("us")
