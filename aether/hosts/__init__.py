"""Hosts: the agents whose hooks and transcripts feed a colony, one package each."""
