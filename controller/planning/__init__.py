"""Plans of replica places: what leaves a broker, joins a topic or evens a cluster out, with few moves. On columns.

A `cluster.ClusterLayout` goes in and a `cluster.ReassignmentPlan` comes out; neither is of any caller's kind, so
commands make layouts of what controllers answer, and the pipeline makes them of its tables. `draining.plan_drain` moves
what stands on drained brokers and nothing else; `widths.plan_widths` gives partitions more replicas, or fewer;
`planner.plan` evens all of it out. `validator.judge`, which knows nothing of how a plan was made, says whether it may
be carried out and how even it is; `bounds.fewest_moves` says what no plan can do with less.

The rules, hard: the number of replicas is kept, no broker twice; replicas stand in as many racks as there can be (never
two in one while another has none); nothing new comes to a broker that takes none, nothing stays on one that is drained.
A lost replica, in a log directory that is not online, counts where it is but cannot lead.
The goals, in this order: replica counts within 1 of even where the rules allow it, leader counts likewise, few moves.
For `draining` and `widths` the moves come first: what need not move stays, be it uneven or two in a rack.

How it is found:

1. `levels`: how many replicas each broker is to have. Racks of unequal size cannot all have the same load where a
   partition may be in each of them once only; then the brokers of a large rack get less.
2. `forced`: replicas on drained brokers and in a rack twice must go; of those in a rack twice the one on the fuller
   broker. They go to where most is missing.
3. `balancing`: from brokers that have too many straight to those that have too few, between racks first (not every
   partition may go there), then within racks (every partition may). What is left goes over brokers in between.
4. `move_count`: replicas change their brokers in rings, counts stay, as long as that saves moves.
5. `leaders`: the first replica is the preferred leader. Order within a partition moves nothing; where that does not
   suffice, two brokers exchange a replica that leads and one that does not.

Steps 3 and 5 end when no chain of replacements leads from a broker to another with two less. The sets of brokers that
a partition may have are the bases of a matroid, loads are therefore an M-convex set, and on such a set that end is the
evenest there is (A. Frank and K. Murota, "Decreasing minimization on M-convex sets"). `validator` checks the end.
Step 4 ends when no ring of replacements (`costs`) saves a move, the optimum of a weighted matroid intersection;
`bounds` proves it by the prices that then stand on the brokers.
"""
