"""Traces of requests, sent to a collector by OpenTelemetry: only where the settings name one."""
