"""What drills say: verdicts, text, page and command line; no drill is run here."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from quorate.scripts.cli.__main__ import make_app
from quorate.scripts.cluster.members import LocalNode
from quorate.scripts.drills.commands import InvalidCommand, filled, parse_command
from quorate.scripts.drills.controller_drills import OLDER_VARIABLE
from quorate.scripts.drills.drill import ALWAYS, outage
from quorate.scripts.drills.load import longest_wait_ms, unwritten_ms
from quorate.scripts.drills.machine_faults import MachineFaults
from quorate.scripts.drills.outcome import DrillEvent, DrillMeasurement, DrillOutcome
from quorate.scripts.drills.report import lines, page
from quorate.scripts.drills.runner import DRILLS, judged, run_drill, skipped
from quorate.scripts.terminal.command_line import run

NAMES = {
    "steady", "read-only-disk", "doubled-segment", "foreign-directory",
    "leader-kill", "leader-pause", "cold-boot", "rolling-restart", "rolling-upgrade", "follower-wipe",
    "follower-far-behind",
    "one-way-partition", "two-way-partition", "slow-disk", "full-disk", "bit-flip", "torn-tail", "quorum-loss",
    "restore-from-backup", "wiped-voter", "mass-broker-loss", "broker-flap", "clock-jump", "import-and-replay",
    "frozen-target", "slow-follower", "failed-directory", "rack-lost",
}  # fmt: skip


def outcome_of(outage_ms: float | None, reason: str = "") -> DrillOutcome:
    measured = (DrillMeasurement(expectation=outage(100), value=outage_ms),)
    verdict, why = judged(measured, reason)
    return DrillOutcome(
        drill="leader-kill",
        hypothesis="another takes over <soon>",
        verdict=verdict,
        reason=why,
        begun_at_ms=1_800_000_000_000,
        seconds=12.0,
        cluster_id="a-cluster",
        controllers=3,
        brokers=3,
        measured=measured,
        noted={"digest": "00ff"},
        events=(
            DrillEvent(at_s=2.0, kind="seen", text="steady"),
            DrillEvent(at_s=5.5, kind="fault", text="kill -9 <controller-1>"),
        ),
        acknowledged_s=(2.1, 2.2, 5.9),
    )


def test_every_drill_that_is_promised_is_there() -> None:
    assert set(DRILLS) >= NAMES
    for drill in DRILLS.values():
        names = [one.name for one in drill.all_expectations]
        assert len(names) == len(set(names)) > len(ALWAYS)


@pytest.mark.parametrize(
    ("outage_ms", "reason", "verdict", "says"),
    [
        (100.0, "", "passed", ""),
        (100.5, "", "failed", "longest wait of a write, ms: 100.5, expected at most 100"),
        (None, "", "failed", "longest wait of a write, ms: not measured, expected at most 100"),
        (1.0, "it was not steady", "broken", "it was not steady"),
    ],
)
def test_verdict_follows_from_what_was_measured(outage_ms: float | None, reason: str, verdict: str, says: str) -> None:
    outcome = outcome_of(outage_ms, reason)

    assert (outcome.verdict, outcome.reason) == (verdict, says)
    assert DrillOutcome.model_validate_json(outcome.model_dump_json()) == outcome


@pytest.mark.parametrize(
    ("times", "missing_ms"),
    [
        ([9.0, 12.0], 0),
        ([8.0, 13.0], 0),
        ([9.25, 12.5], 250),  # they began too late
        ([8.0, 11.5], 500),  # nobody wrote while it recovered
        ([9.5, 11.5], 1_000),
        ([], 3_000),
    ],
)
def test_writes_that_do_not_cover_fault_and_recovery_fail_every_drill(times: list[float], missing_ms: float) -> None:
    """The fault was at 10 s, and all was well again at 12 s."""
    assert unwritten_ms(times, 10.0, 12.0) == missing_ms
    (expected,) = (one for one in ALWAYS if one.name == "unwritten_ms")
    verdict, why = judged((DrillMeasurement(expectation=expected, value=unwritten_ms(times, 10.0, 12.0)),), "")
    assert (verdict == "failed", "time without writes" in why) == (missing_ms > 0, missing_ms > 0)


def test_longest_wait_of_a_write_is_that_of_fault_and_recovery() -> None:
    times = [1.0, 4.0, 9.9, 10.5, 11.0, 20.0]
    assert longest_wait_ms(times, 10.0, 11.0) == 500
    assert longest_wait_ms(times, 10.0, 19.0) == 8_000, "nobody was answered until the end"
    assert longest_wait_ms([], 10.0, 12.0) == 2_000


def test_text_tells_events_and_measurements() -> None:
    said = "\n".join(lines(outcome_of(250)))

    assert "leader-kill: failed, 12 s" in said
    assert "5.50 s  kill -9 <controller-1>" in said
    assert "FAILS  longest wait of a write, ms: 250 (expected at most 100)" in said
    assert "  noted  digest: 00ff" in said


def test_page_is_whole_in_itself_and_escapes_what_it_shows() -> None:
    made = page([outcome_of(50), outcome_of(250)])

    assert "Drills: 1 of 2 passed" in made
    assert "kill -9 &lt;controller-1&gt;" in made
    assert "<soon>" not in made
    assert made.count("<svg") == 2
    for outside in ("http://", "https://", "src=", "<script"):
        assert outside not in made


def test_page_of_a_drill_that_never_began_has_no_bars() -> None:
    empty = outcome_of(None, "a port was taken").model_copy(update={"events": (), "acknowledged_s": ()})

    made = page([empty])

    assert "a port was taken" in made
    assert "<rect" not in made


def test_skipped_drill_is_told_and_counted() -> None:
    outcome = skipped(DRILLS["leader-kill"], "it is not possible here")

    assert list(lines(outcome))[0::2] == ["leader-kill: skipped, 0 s", "  it is not possible here"]
    assert "Drills: 1 of 2 passed, 1 skipped" in page([outcome_of(50), outcome])


async def test_drill_that_this_machine_does_not_allow_is_skipped_before_anything_is_made() -> None:
    impossible = replace(DRILLS["read-only-disk"], obstacle=lambda: "a read-only mount is not possible here: no")

    outcome = await run_drill(impossible, {}, keep=lambda directory: None)

    assert (outcome.verdict, outcome.reason) == ("skipped", "a read-only mount is not possible here: no")
    assert outcome.events == ()


async def test_interpreter_of_the_release_before_that_is_not_there_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(OLDER_VARIABLE, str(tmp_path / "python"))

    outcome = await run_drill(DRILLS["rolling-upgrade"], {}, keep=lambda directory: None)

    assert outcome.verdict == "broken"
    assert outcome.reason == f"QUORATE_OLDER_PYTHON names '{tmp_path / 'python'}', which cannot be run"
    assert outcome.events == ()


def test_only_drills_that_leave_files_and_settings_alone_may_be_run_on_processes_that_serve_others() -> None:
    kinds = {drill.name: drill.kind for drill in DRILLS.values()}

    assert {name for name, kind in kinds.items() if kind in ("observes", "kills")} == {
        "steady", "leader-kill", "leader-pause", "cold-boot", "rolling-restart", "mass-broker-loss", "broker-flap",
        "frozen-target", "rack-lost",
    }  # fmt: skip
    for drill in DRILLS.values():
        assert (drill.kind == "kills") == bool(drill.acts)
        assert drill.kind == "rigs" or not drill.is_faulty
        assert set(drill.limits_elsewhere) <= {one.name for one in drill.expectations}


def test_command_is_filled_in_for_a_node() -> None:
    words = parse_command("ssh {host} 'kill {kind}-{id}' {name} $x")

    assert filled(words, LocalNode("broker", 11, "h1", None, (11,))) == [
        "ssh",
        "h1",
        "kill broker-11",
        "broker-11",
        "$x",
    ]


@pytest.mark.parametrize(
    ("text", "says"), [("", "empty"), ("kill 'x", "No closing quotation"), ("kill {pid}", "nothing is known of {pid}")]
)
def test_command_that_cannot_be_understood(text: str, says: str) -> None:
    with pytest.raises(InvalidCommand, match=says):
        parse_command(text)


def test_faults_travel_by_file(tmp_path: Path) -> None:
    MachineFaults(sync_delay_ms=500, deaf_to=(1, 3)).save(tmp_path / "faults.json")

    assert json.loads((tmp_path / "faults.json").read_text()) == {
        "sync_delay_ms": 500, "is_full": False, "is_read_only": False, "clock_ahead_ms": 0.0, "deaf_to": [1, 3],
    }  # fmt: skip


def call(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        run(make_app(arguments), arguments)
    out, err = capsys.readouterr()
    return int(str(ended.value.code)), out, " ".join(err.replace("│", " ").split())


def test_list_names_every_drill(capsys: pytest.CaptureFixture[str]) -> None:
    _, text, _ = call(["drill", "list"], capsys)
    _, document, _ = call(["drill", "list", "--json"], capsys)

    assert [line.split()[0] for line in text.splitlines()] == list(DRILLS)
    listed = {one["name"]: one for one in json.loads(document)}
    assert list(listed) == list(DRILLS)
    assert (listed["leader-kill"]["kind"], listed["leader-kill"]["acts"]) == ("kills", ["kill", "start"])


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["no-such-drill"], "'no-such-drill' is no drill; there are steady"),
        (["leader-kill", "--expect", "outage_ms"], "say it as NAME=AT_MOST"),
        (["leader-kill", "--expect", "outage_ms=-1"], "a number from 0"),
        (["leader-kill", "--expect", "outage_ms=inf"], "a number from 0"),
        (["leader-kill", "--on", "http://c:1"], "leader-kill on a named cluster needs --kill-with COMMAND"),
        (["rolling-restart", "--on", "http://c:1", "--start-with", "x"], "needs --stop-with COMMAND"),
        (["leader-kill", "--on", "http://c:1", "--kill-with", "x {pid}"], "--kill-with: 'x {pid}': nothing is known"),
        (["leader-kill", "--destroy"], "--destroy is for a cluster that is there already: --on DIR"),
        (["steady", "--on", "http://c:1", "--destroy"], "--destroy is for a directory"),
        (["leader-kill", "--on", "var", "--kill-with", "x"], "--kill-with is for a cluster named by --on"),
        (["leader-kill", "--expect", "elections=1"], "these drills measure healthy_again_ms, lost_writes"),
    ],
)
def test_what_cannot_be_run_is_usage(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = call(["drill", "run", *arguments], capsys)

    assert code == 2
    assert says in err


def test_cluster_that_does_not_fit_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = call(["drill", "run", "leader-kill", "--on", str(tmp_path)], capsys)

    assert code == 1
    assert "holds no cluster: make one with" in err
