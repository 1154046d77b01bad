"""What limits a scenario is named by cause, not by symptom."""

from mup.lqn import Activity, Call, Constant, Entry, Exponential, Model, Processor, Task
from simulator import simulate
from simulator.whatif import bottleneck


def chain(*, front_threads: int, back_threads: int, cores: int, delay: float) -> Model:
    """Return 30 users -> Front -> Back; both on one host; Back computes 10 ms and waits ``delay``."""
    zero = Constant(0.0)

    def entry(name: str, demand: float, wait: float, *calls: Call) -> Entry:
        work = Activity(name="work", demand=Exponential(demand), delay=Constant(wait), calls=calls)
        return Entry(name=name, start="work", activities=(work,))

    ask = Activity(name="ask", demand=zero, delay=zero, calls=(Call(task="Front", entry="/f/"),))
    users = Task(
        name="Users",
        role="reference",
        threads=30,
        think=Exponential(0.05),
        entries=(Entry(name="cycle", start="ask", activities=(ask,)),),
    )
    front = Task(
        name="Front",
        threads=front_threads,
        processor="host",
        entries=(entry("/f/", 0.001, 0.0, Call(task="Back", entry="/b/")),),
    )
    back = Task(name="Back", threads=back_threads, processor="host", entries=(entry("/b/", 0.01, delay),))
    return Model(name="chain", processors=(Processor(name="host", cores=cores),), tasks=(users, front, back))


def limit(model: Model) -> str:
    found = bottleneck(model, simulate(model, precision=0.05))
    assert found is not None
    return found[0]


def test_a_full_callee_is_the_cause_of_its_full_caller() -> None:
    """Front's threads all wait for Back's single one: both are 100 % busy, Back is named."""
    model = chain(front_threads=4, back_threads=1, cores=8, delay=0.02)
    result = simulate(model, precision=0.05)
    front = result.tasks["Front"].utilization
    assert front is not None
    assert front.mean > 0.95
    assert limit(model) == "task Back"


def test_a_full_processor_is_the_cause_of_the_tasks_on_it() -> None:
    """One core for everybody: threads are busy waiting for it."""
    assert limit(chain(front_threads=4, back_threads=4, cores=1, delay=0.0)) == "processor host"


def test_a_small_pool_in_front_of_idle_services_is_the_bottleneck_itself() -> None:
    """Front has one thread, Back has plenty: Front is named although it calls Back."""
    assert limit(chain(front_threads=1, back_threads=50, cores=8, delay=0.02)) == "task Front"
