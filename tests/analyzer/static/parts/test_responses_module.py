"""Work behind a response is reported once."""

from __future__ import annotations

from probing import Probe

from analyzer.static.application import Path
from analyzer.static.diagnostics import Diagnostics
from analyzer.static.responses import report_second_phase


def test_work_behind_a_response(probe: Probe) -> None:
    done = probe("comm.respond(1)\nif comm.params:\n    comm.call('B', '/b/').get()\nreturn 1")
    paths = [Path(f.state.operations, "return", 0, f.state.local_lines) for f in done.flows]
    findings = Diagnostics()
    report_second_phase(done.function, paths, findings)
    assert [finding.code for finding in findings.all()] == ["MUP022"]
