"""Every version of everything: what held from which record to which, out of the same rows as the fold.

Nothing here knows Spark. The mass records of a task are shared out by topic into *cells* (``cells``); all cells of a
bucket, with the rare records of the whole log (``timeline``), give the versions of its partitions (``partitions``);
brokers, topics and configs are replayed in order (``catalogue``). Tables are written by day (``tables``).

A version is valid at N, the state of all records below offset N, when ``valid_from_offset < N`` and ``valid_to_offset``
is null or at least N. Inside a metadata transaction nothing is valid before its End: versions from there begin at the
End's offset, and one that was changed again in the same transaction is empty: it is never valid.
"""
