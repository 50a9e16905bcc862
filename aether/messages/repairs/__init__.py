"""Repairs: how each provider's refusals are mended, one module per provider.

Nothing is invented. What is lost is told in a finding of level `warning`, what is only moved, renamed or
respelt in one of level `info`. A message that needs nothing is the same object afterwards.
"""
