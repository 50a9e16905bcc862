"""The repair of messages by one provider's module, seen through to the end."""

from __future__ import annotations


def require_repaired(module, raws, expected, codes):
    """See that `module` repairs `raws` to `expected` with findings of `codes`, and that nothing is left to repair."""
    done = module.repaired(raws)

    assert done.raws == expected
    assert [found.code for found in done.findings] == codes
    assert [found.code for found in module.findings(done.raws) if found.level == "error"] == []
    assert module.repaired(done.raws)[:2] == (done.raws, [])
