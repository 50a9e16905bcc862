import aether
from aether.cli import demo
from tests.api.calls import memory, whole


def test_the_demo_goes_round_the_whole_loop(tmp_path):
    place, imported = demo.start_demo(tmp_path)

    assert imported.bad_lines == []
    assert len(imported.phases) >= 3
    done = [demo.finish_phase(place, phase) for phase in imported.phases]
    assert [each.phase for each in done] == imported.phases
    assert all(each.items > 0 for each in done)
    assert all(each.ingested.session["compression_ratio"] > 1.5 for each in done)
    assert memory(place)["working_memory"]["items"] == []

    patterns = demo.promoted(place)
    assert max(len(each.sessions) for each in patterns) >= 3, "what repeats across phases emerged"
    assert all(each.pattern["occurrences"] == len(each.sessions) for each in patterns)
    counts = [each.pattern["occurrences"] for each in patterns]
    assert counts == sorted(counts, reverse=True)

    reported = demo.checked(place)
    assert reported["findings"] == []
    assert reported["restored"]
    assert reported["undone"]["operation"]
    assert len(aether.get_compression_stats(home=place)["sessions"]) == len(done)
    whole(place)
