// The algorithms of collectives, as schedules for any number of ranks. Costs are those of the model in which a message
// of n bytes takes alpha + n * beta, and combining a byte takes gamma; S is the size of the data, N the number of
// ranks. Example:
//     const Schedule doubling = recursive_doubling(6);
//     const std::int64_t sent = elements_sent(doubling, 0, 1000);  // by rank 0, of 1000 elements
#pragma once

#include "tandem/comm/schedules/schedule.h"

#include <span>

namespace tandem::comm {

// All-reduce ---------------------------------------------------------------------------------------------------------

/// P. Patarasuk, X. Yuan: "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC 69(2), 2009. One
/// chunk for each rank. In N-1 rounds each rank passes a chunk on to its right neighbour, which adds its own part; then
/// each rank holds one chunk of the result, and in N-1 rounds these go round. 2(N-1) alpha + 2(N-1)/N S beta: a rank
/// sends 2(N-1)/N of the data, which no algorithm can undercut.
Schedule ring_all_reduce(int ranks);

/// In round k, ranks whose numbers differ in bit k exchange all they have and both combine it. log2(N) (alpha + S
/// beta): for small data. Ranks beyond the largest power of two give theirs to a partner first, and get the result from
/// it.
Schedule recursive_doubling(int ranks);

/// R. Rabenseifner: "Optimization of collective reduction operations", ICCS 2004. Recursive halving leaves each rank a
/// chunk of the result, recursive doubling spreads it. 2 log2(N) alpha + 2(N-1)/N S beta where N is a power of two;
/// else as above for the ranks beyond.
Schedule halving_doubling(int ranks);

/// P. Sanders, J. Speck, J. L. Träff: "Two-tree algorithms for full bandwidth broadcast, reduction and scan", Parallel
/// Computing 35(12), 2009. Each half of the data goes up and down a binary tree of its own; a rank that has children in
/// one tree is a leaf of the other (but rank 0 of an odd number has one child in each). 4 log2(N) alpha + 2 S beta,
/// where the data are cut into many segments.
Schedule double_binary_tree(int ranks);

/// Each rank gets one chunk from all others, combines it, and sends it to all others. 2 alpha in one round each way, if
/// ranks can send to all others at once; 2(N-1)/N S beta.
Schedule direct_all_reduce(int ranks);

/// For several hosts: ranks of a host combine their data at one of them, these form a ring over hosts, and give their
/// host the result. `node_of_rank` has a number for each rank, alike for ranks of a host.
Schedule two_level_all_reduce(std::span<const int> node_of_rank);

// Others -------------------------------------------------------------------------------------------------------------

/// All data, down a binomial tree: log2(N) (alpha + S beta).
Schedule binomial_broadcast(int ranks, int root);
/// All data, from each rank to the next: with many segments alpha N + S beta.
Schedule chain_broadcast(int ranks, int root);
/// All data, combined up a binomial tree: log2(N) (alpha + S (beta + gamma)).
Schedule binomial_reduce(int ranks, int root);
/// One chunk for each rank, N-1 rounds round a ring.
Schedule ring_all_gather(int ranks);
/// One chunk for each rank, to it from all others.
Schedule direct_reduce_scatter(int ranks);
/// One chunk for each rank, from it to the root.
Schedule direct_gather(int ranks, int root);
/// One chunk for each rank, from the root to it.
Schedule direct_scatter(int ranks, int root);
/// Chunk a * ranks + b, from rank a to rank b. What a rank has for itself is not in it.
Schedule direct_all_to_all(int ranks);

}  // namespace tandem::comm
