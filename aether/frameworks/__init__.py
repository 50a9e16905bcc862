"""Adapters for agent frameworks and SDKs, one module each."""
