"""The independent replay: a log's records folded into state, by other rules of work than the controllers' replay.

Nothing here knows Spark. A *task* (some batches in a row) is folded into *elements*, one or a few per partition
(``task``); the elements of many tasks are composed into the state at a moment (``compose``); all other records are
replayed in order (``catalogue``). A *moment* is an offset: the state at it is what all records below it add up to,
without transactions that are aborted or still open there.
"""
