// Writes the values of an object graph as a checkpoint.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/files/file_system.h"
#include "train/sharding.h"
#include "train/trackable.h"

namespace headrace {

// A tensor of this name holds the graph, a TrackableObjectGraph.
inline constexpr char kObjectGraphKey[] = "_CHECKPOINTABLE_OBJECT_GRAPH";

// A child beside those that the root object itself has.
using NamedChild = std::pair<std::string, TrackablePtr>;

// Makes the folder that a checkpoint is to lie in, or deletes from it what
// killed processes of this machine left half written. InvalidArgument for a
// prefix that ends in a slash.
Status PrepareFolder(FileSystem* fs, const std::string& prefix);

// The values of a graph at one moment, ready to be written. They are shared
// with the variables, which copy before they change, so writing may go on
// while training does. Thread-safe once made.
class GraphValues {
 public:
  // Reads the values of all that can be reached from `root`, which has
  // `extra` children too. Errors are those of the objects.
  static StatusOr<GraphValues> Gather(const TrackablePtr& root,
                                      absl::Span<const NamedChild> extra = {});

  struct Options {
    // Return only when the files have reached the disk. Without it they are
    // whole for every reader and after a kill of the process, but a crash of
    // the machine may damage the newest ones, which readers then notice.
    bool sync = true;
    // Most bytes of one data file (sharding.h); 0: there is one file.
    int64_t max_shard_bytes = 0;
  };
  // Writes PREFIX.index and PREFIX.data-*, making the folder they lie in; a
  // checkpoint of that name is replaced at once. Other threads may write other
  // prefixes meanwhile. Unimplemented for values that only a graph knows.
  Status Write(FileSystem* fs, const std::string& prefix,
               const Options& options) const;

  // In the order of writing.
  const Shard& values() const { return values_; }
  // The object of each of values().
  const std::vector<TrackablePtr>& owners() const { return owners_; }
  const std::string& serialized_graph() const { return graph_; }

 private:
  friend class Saver;
  Shard values_;
  std::vector<TrackablePtr> owners_;
  std::string graph_;
};

}  // namespace headrace
