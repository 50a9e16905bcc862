"""The check and the repair of raw messages in one format."""

from __future__ import annotations

from aether.messages.faults import Faults, RepairedRaws
from aether.messages.providers import provider


def faults_of(format, raws):
    """Return what the provider of `format` refuses in `raws`, as findings of a check."""
    faults = Faults()
    provider(format).repaired(raws, faults)
    return [fault.checked() for fault in faults.listed]


def repaired(format, raws):
    """Return `raws` repaired, with the findings of the repair."""
    faults = Faults()
    rows = provider(format).repaired(raws, faults)
    findings = [fault.repaired() for fault in faults.listed if fault.effect != "hint"]
    return RepairedRaws([raw for _, raw in rows], findings, [at for at, _ in rows])


def require_repaired(format, raws, expected, codes):
    """See that `raws` are repaired to `expected` with findings of `codes`, and that nothing is left to repair."""
    done = repaired(format, raws)

    assert done.raws == expected
    assert [finding.code for finding in done.findings] == codes
    assert repaired(format, done.raws)[:2] == (done.raws, [])
