"""The local web page `aether view`: a person reads, judges and corrects memory in a browser.

Pages and actions are plain functions without a framework; `app` alone serves them.
"""
