"""Replay: a recorded history is checked again and drawn."""

from dataclasses import replace

from jepsen import formatting
from jepsen.history import Event, History, Operation
from jepsen.replay import replay
from jepsen.tests.test_shrink import KEY, OTHER, check, read, write
from jepsen.violation import Violation

WRITES = [write(0, "a", 0, 1), write(1, "b", 2, 3)]


def write_history(tmp_path, *operations, **final):
    path = tmp_path / "history.jsonl"
    History({"cluster": "none"}, [*operations], [Event("kill a worker", 1, 2)], final).write(path)
    return path


def test_a_violation_is_printed_with_its_operations_and_drawn(tmp_path, capsys):
    path = write_history(tmp_path, *WRITES, read(2, "a", 4, 5))
    assert replay(path, {"register": check}) == 1
    printed = capsys.readouterr().out
    assert f"register: {KEY} has no order" in printed
    assert "#2 0.0000-0.0000 client 2, service 0: GET /registers/11111111 -> 200 a" in printed
    picture = path.with_suffix(".svg").read_text()
    assert "#1 PUT" in picture
    assert "#2 GET" in picture
    assert "kill a worker" in picture


def test_each_invariant_has_a_picture(tmp_path):
    path, svg = write_history(tmp_path, *WRITES, read(2, "a", 4, 5)), tmp_path / "out.svg"

    def check_twice(history):
        return [*(violations := check(history)), *(replace(violation, invariant="other") for violation in violations)]

    assert replay(path, {"both": check_twice}, svg) == 1
    assert {picture.name for picture in tmp_path.glob("*.svg")} == {"out.svg", "out-2.svg"}


def test_an_undecided_search_is_printed_and_is_no_violation(tmp_path, capsys):
    path = write_history(tmp_path, *WRITES)

    def check_without_verdict(_history):
        return [Violation("register: undecided", "no verdict", [0], undecided=True)]

    assert replay(path, {"register": check_without_verdict}) == 0
    printed = capsys.readouterr().out
    assert "register: undecided: no verdict" in printed
    assert "no violations" in printed
    assert not [*tmp_path.glob("*.svg")]


def test_a_correct_history_has_no_picture(tmp_path, capsys):
    path = write_history(tmp_path, *WRITES, read(2, "b", 4, 5))
    assert replay(path, {"register": check}) == 0
    assert "no violations" in capsys.readouterr().out
    assert not [*tmp_path.glob("*.svg")]


def check_end(history):
    """Return the final state as the sentence of a violation."""
    return [Violation("state", history.final["state"])] if "state" in history.final else []


def test_operations_on_objects_of_a_wrong_final_state_are_drawn(tmp_path, capsys):
    calls = [*WRITES, write(2, "c", 4, 5, OTHER), write(3, "d", 6, 7, status=409), read(4, "b", 8, 9)]
    path = write_history(tmp_path, *calls, state=f"{KEY} is z")
    assert replay(path, {"end": check_end}) == 1
    printed = capsys.readouterr().out
    assert f"state: {KEY} is z" in printed
    assert "The final state alone violates the invariant.  Operations" in printed
    assert "Operations that may have changed these objects, all 2, " in printed
    assert "#1 0.0000-0.0000 client 1, service 0: PUT /registers/11111111 b -> 204" in printed
    picture = path.with_suffix(".svg").read_text()
    assert "state: 11111111 is z (the final state)" in picture
    assert [number for number in range(5) if f">#{number} " in picture] == [0, 1]
    assert "kill a worker" in picture


def test_only_the_last_of_many_operations_are_drawn(tmp_path, capsys):
    path = write_history(tmp_path, *(write(number, "a", number, number) for number in range(50)), state=f"{KEY} is z")
    assert replay(path, {"end": check_end}) == 1
    assert "the last 40 of 50" in capsys.readouterr().out
    picture = path.with_suffix(".svg").read_text()
    assert [number for number in range(50) if f">#{number} " in picture] == [*range(10, 50)]


def test_a_final_state_without_uuids_is_drawn_with_the_events(tmp_path, capsys):
    path = write_history(tmp_path, *WRITES, state="writer 7 has a gap")
    assert replay(path, {"end": check_end}) == 1
    printed = capsys.readouterr().out
    assert "The final state alone violates the invariant; no operation names the objects concerned.  Events" in printed
    picture = path.with_suffix(".svg").read_text()
    assert "state: writer 7 has a gap" in picture
    assert "kill a worker" in picture
    assert "PUT" not in picture


def test_an_unsuccessful_search_does_not_blame_the_final_state(tmp_path, capsys):
    path = write_history(tmp_path, *WRITES)

    def check_calls(history):
        return [Violation("calls", f"{KEY} is wrong")] if len(history.operations) == 2 else []

    assert replay(path, {"calls": check_calls}, max_checks=0) == 1
    assert "No short violating part was found.  Operations that may have changed" in capsys.readouterr().out


def test_a_refusal_is_printed_with_its_code():
    refusal = Operation(2, 0, 4, 5, 0, "PUT", f"/registers/{KEY}", 38, {"consumer_generation": None}, 409,
                        {"errors": [{"code": "placement.concurrent_update"}]})  # fmt: skip
    assert formatting.line_of(refusal).endswith("PUT /registers/11111111 generation null -> 409 concurrent_update")
