"""Quotas of clients that controllers enforce: rates, as token buckets."""
