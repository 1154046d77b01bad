"""The services behind."""

from mup import EP, MS


class Approvals(MS):
    @EP("/request")
    def request_(self, comm):
        comm.respond({})

    @EP("/status")
    def status_(self, comm):
        comm.respond({})


class Artifacts(MS):
    @EP("/discard")
    def discard_(self, comm):
        comm.respond({})

    @EP("/promote")
    def promote_(self, comm):
        comm.respond({})

    @EP("/scan")
    def scan_(self, comm):
        comm.respond({})

    @EP("/stage")
    def stage_(self, comm):
        comm.respond({})


class Audit(MS):
    @EP("/append")
    def append_(self, comm):
        comm.respond({})


class Baselines(MS):
    @EP("/get")
    def get_(self, comm):
        comm.respond({})

    @EP("/put")
    def put_(self, comm):
        comm.respond({})


class Billing(MS):
    @EP("/default_rates")
    def default_rates_(self, comm):
        comm.respond({})

    @EP("/rates")
    def rates_(self, comm):
        comm.respond({})


class Catalog(MS):
    @EP("/get")
    def get_(self, comm):
        comm.respond({})

    @EP("/list")
    def list_(self, comm):
        comm.respond({})

    @EP("/register")
    def register_(self, comm):
        comm.respond({})


class DataQuality(MS):
    @EP("/validate")
    def validate_(self, comm):
        comm.respond({})


class Directory(MS):
    @EP("/teams")
    def teams_(self, comm):
        comm.respond({})


class EventStore(MS):
    @EP("/read")
    def read_(self, comm):
        comm.respond({})

    @EP("/save_snapshot")
    def save_snapshot_(self, comm):
        comm.respond({})

    @EP("/snapshot")
    def snapshot_(self, comm):
        comm.respond({})


class Events(MS):
    @EP("/publish")
    def publish_(self, comm):
        comm.respond({})


class Experiments(MS):
    @EP("/assignment")
    def assignment_(self, comm):
        comm.respond({})

    @EP("/expose")
    def expose_(self, comm):
        comm.respond({})

    @EP("/get")
    def get_(self, comm):
        comm.respond({})


class Explainer(MS):
    @EP("/shap")
    def shap_(self, comm):
        comm.respond({})


class Fairness(MS):
    @EP("/report")
    def report_(self, comm):
        comm.respond({})


class Flags(MS):
    @EP("/evaluate")
    def evaluate_(self, comm):
        comm.respond({})


class Identity(MS):
    @EP("/introspect")
    def introspect_(self, comm):
        comm.respond({})


class JobStore(MS):
    @EP("/create")
    def create_(self, comm):
        comm.respond({})

    @EP("/find")
    def find_(self, comm):
        comm.respond({})

    @EP("/get")
    def get_(self, comm):
        comm.respond({})

    @EP("/update")
    def update_(self, comm):
        comm.respond({})


class Lineage(MS):
    @EP("/downstream")
    def downstream_(self, comm):
        comm.respond({})

    @EP("/record")
    def record_(self, comm):
        comm.respond({})

    @EP("/upstream")
    def upstream_(self, comm):
        comm.respond({})


class Metadata(MS):
    @EP("/create")
    def create_(self, comm):
        comm.respond({})

    @EP("/delete")
    def delete_(self, comm):
        comm.respond({})

    @EP("/get")
    def get_(self, comm):
        comm.respond({})

    @EP("/importance")
    def importance_(self, comm):
        comm.respond({})

    @EP("/list")
    def list_(self, comm):
        comm.respond({})

    @EP("/tag")
    def tag_(self, comm):
        comm.respond({})

    @EP("/update")
    def update_(self, comm):
        comm.respond({})

    @EP("/versions")
    def versions_(self, comm):
        comm.respond({})


class Metrics(MS):
    @EP("/canary")
    def canary_(self, comm):
        comm.respond({})

    @EP("/increment")
    def increment_(self, comm):
        comm.respond({})

    @EP("/range")
    def range_(self, comm):
        comm.respond({})


class ModelServer(MS):
    @EP("/embed")
    def embed_(self, comm):
        comm.respond({})

    @EP("/predict")
    def predict_(self, comm):
        comm.respond({})

    @EP("/predict_batch")
    def predict_batch_(self, comm):
        comm.respond({})

    @EP("/unload")
    def unload_(self, comm):
        comm.respond({})

    @EP("/warmup")
    def warmup_(self, comm):
        comm.respond({})


class Notify(MS):
    @EP("/email")
    def email_(self, comm):
        comm.respond({})

    @EP("/page")
    def page_(self, comm):
        comm.respond({})

    @EP("/slack")
    def slack_(self, comm):
        comm.respond({})


class OfflineStore(MS):
    @EP("/scan")
    def scan_(self, comm):
        comm.respond({})


class OnlineStore(MS):
    @EP("/read")
    def read_(self, comm):
        comm.respond({})

    @EP("/status")
    def status_(self, comm):
        comm.respond({})

    @EP("/write")
    def write_(self, comm):
        comm.respond({})


class PredictionLog(MS):
    @EP("/disagreement")
    def disagreement_(self, comm):
        comm.respond({})

    @EP("/histogram")
    def histogram_(self, comm):
        comm.respond({})

    @EP("/join")
    def join_(self, comm):
        comm.respond({})

    @EP("/sample")
    def sample_(self, comm):
        comm.respond({})

    @EP("/write")
    def write_(self, comm):
        comm.respond({})


class Quota(MS):
    @EP("/release")
    def release_(self, comm):
        comm.respond({})

    @EP("/reserve")
    def reserve_(self, comm):
        comm.respond({})

    @EP("/restore")
    def restore_(self, comm):
        comm.respond({})

    @EP("/usage")
    def usage_(self, comm):
        comm.respond({})


class Routes(MS):
    @EP("/get")
    def get_(self, comm):
        comm.respond({})

    @EP("/put")
    def put_(self, comm):
        comm.respond({})


class Scheduler(MS):
    @EP("/cancel")
    def cancel_(self, comm):
        comm.respond({})

    @EP("/capacity")
    def capacity_(self, comm):
        comm.respond({})

    @EP("/logs")
    def logs_(self, comm):
        comm.respond({})

    @EP("/submit")
    def submit_(self, comm):
        comm.respond({})


class Silences(MS):
    @EP("/active")
    def active_(self, comm):
        comm.respond({})


class StreamStore(MS):
    @EP("/latest")
    def latest_(self, comm):
        comm.respond({})

    @EP("/subscribe")
    def subscribe_(self, comm):
        comm.respond({})


class TextIndex(MS):
    @EP("/query")
    def query_(self, comm):
        comm.respond({})


class Tracking(MS):
    @EP("/finish")
    def finish_(self, comm):
        comm.respond({})

    @EP("/metrics")
    def metrics_(self, comm):
        comm.respond({})

    @EP("/start")
    def start_(self, comm):
        comm.respond({})

    @EP("/tag")
    def tag_(self, comm):
        comm.respond({})


class Trainer(MS):
    @EP("/trial")
    def trial_(self, comm):
        comm.respond({})


class VectorIndex(MS):
    @EP("/query")
    def query_(self, comm):
        comm.respond({})


class Warehouse(MS):
    @EP("/export")
    def export_(self, comm):
        comm.respond({})

    @EP("/export_status")
    def export_status_(self, comm):
        comm.respond({})

    @EP("/partitions")
    def partitions_(self, comm):
        comm.respond({})

    @EP("/read")
    def read_(self, comm):
        comm.respond({})

    @EP("/snapshot")
    def snapshot_(self, comm):
        comm.respond({})

    @EP("/write")
    def write_(self, comm):
        comm.respond({})
