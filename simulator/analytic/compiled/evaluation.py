"""See ``simulator.analytic.evaluation``: times and loads of all plans, callees first."""

from __future__ import annotations

from mup.native.binding import internal
from simulator.analytic.compiled.entry_times import run_tape
from simulator.analytic.compiled.loads import add_up, overtaken
from simulator.analytic.compiled.records import RELEASING, SYNCHRONOUS, Layout, Numbers, Point
from simulator.analytic.evaluation import SAME

__all__ = ["evaluate"]


@internal
def evaluate(lay: Layout, num: Numbers, st: Point) -> None:
    """Evaluate times and loads of all plans, callees first."""
    for i in range(len(lay.order) - 1, -1, -1):
        p = lay.order[i]
        _step_moments(lay, num, st, p, True)
        if not _unchanged(lay, st, p):
            run_tape(lay, st, p)
            if lay.releases[p] > 0:
                mean, variance = st.reply[p, 0], st.reply[p, 1]
                _step_moments(lay, num, st, p, False)
                run_tape(lay, st, p)
                add_up(lay, num, st, p)
                st.reply[p, 0] = mean
                st.reply[p, 1] = variance
            else:
                add_up(lay, num, st, p)
            st.version[p] += 1
        mean, variance = st.reply[p, 0], st.reply[p, 1]
        station = lay.station[p]
        if station >= 0:
            waited = st.plain_wait[station]
            mean += waited * (1.0 + lay.releases[p])
            variance += waited**2
        if lay.before[p] >= 0:
            mean += st.called[lay.before[p], 0]
            variance += st.called[lay.before[p], 1]
        if lay.behind[p] >= 0:
            mean += st.called[lay.behind[p], 0]
            variance += st.called[lay.behind[p], 1]
        for k in range(lay.forward_first[p], lay.forward_first[p + 1]):
            chance, target = lay.forward_chance[k], lay.forward_target[k]
            once = st.called[target, 0]
            mean += chance * once
            variance += chance * st.called[target, 1] + chance * (1.0 - chance) * once**2
        st.called[p, 0] = mean
        st.called[p, 1] = variance


@internal
def _step_moments(lay: Layout, num: Numbers, st: Point, p: int, releasing: bool) -> None:
    at = lay.processor[p]
    for s in range(lay.step_first[p], lay.step_first[p + 1]):
        mean, variance = num.delay[s], num.delay_variance[s]
        slices = num.slices[s]
        if slices != 0.0:
            one, spread = num.demand[s], num.demand_variance[s]
            if at >= 0:
                if lay.shared[at] == 1:
                    one *= st.plain_stretch[at]
                    spread *= st.plain_stretch[at] ** 2
                else:
                    one += st.plain_wait[at]
                    spread += st.plain_wait[at] ** 2
            mean += slices * one
            variance += slices * spread
        for k in range(lay.call_first[s], lay.call_first[s + 1]):
            if lay.call_kind[k] == SYNCHRONOUS or (releasing and lay.call_kind[k] == RELEASING):
                once = st.called[lay.call_target[k], 0]
                mean += lay.call_mean[k] * once
                variance += lay.call_mean[k] * st.called[lay.call_target[k], 1]
                variance += lay.call_variance[k] * once**2
        st.step_mean[s] = mean + st.extra[s]
        st.step_variance[s] = variance
    for r in range(st.feedback_first[p], st.feedback_end[p]):
        more = overtaken(lay, num, st, r)
        if more != 0.0:
            s = st.feedback_step[r]
            st.step_mean[s] += more / lay.visits[s]


@internal
def _unchanged(lay: Layout, st: Point, p: int) -> bool:
    """Tell whether a plan was evaluated with these times before; if not, take note of them."""
    below = 0
    for s in range(lay.step_first[p], lay.step_first[p + 1]):
        for k in range(lay.call_first[s], lay.call_first[s + 1]):
            below += st.version[lay.call_target[k]]
    for k in range(lay.forward_first[p], lay.forward_first[p + 1]):
        below += st.version[lay.forward_target[k]]
    if lay.before[p] >= 0:
        below += st.version[lay.before[p]]
    if lay.behind[p] >= 0:
        below += st.version[lay.behind[p]]
    if lay.wide[p] == 1:
        below += st.counts[1]
    same = st.below[p] == below
    for s in range(lay.step_first[p], lay.step_first[p + 1]):
        a, b = st.last_mean[s], st.last_variance[s]
        close = abs(a - st.step_mean[s]) <= SAME * a and abs(b - st.step_variance[s]) <= SAME * b
        same = same and close
    if not same:
        st.below[p] = below
        for s in range(lay.step_first[p], lay.step_first[p + 1]):
            st.last_mean[s] = st.step_mean[s]
            st.last_variance[s] = st.step_variance[s]
    return bool(same)
