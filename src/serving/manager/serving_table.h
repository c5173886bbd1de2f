// The versions that requests find, as a value that is replaced whole.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/hash_map.h"
#include "base/mutex.h"
#include "serving/manager/labels.h"
#include "serving/models.h"

namespace headrace::serving {

// When a version was last found, in milliseconds of the steady clock.
using LastUse = std::atomic<int64_t>;

struct ServedVersion {
  ServablePtr servable;
  std::shared_ptr<LastUse> used;  // null: nobody asks
};

struct ServedModel {
  std::map<int64_t, ServedVersion> versions;  // that are available
  // Those that a request would have loaded, and whether the latest is one.
  std::set<int64_t> on_demand;
  bool latest_on_demand = false;
  Labels labels;
};

using ServingTable = HashMap<std::string, ServedModel>;

struct Found {
  ServablePtr servable;   // null: it has to be loaded first
  int64_t on_demand = 0;  // then: which version
};
// Errors of Models::Find.
StatusOr<Found> FindIn(const ServingTable& table, const ModelSpec& spec);

// Where requests find the table. The lock is held while a pointer is copied;
// threads of low priority should not Put.
class TableSlot {
 public:
  std::shared_ptr<const ServingTable> Get() {
    MutexLock lock(mutex_);
    return table_;
  }
  // The table that was there.
  std::shared_ptr<const ServingTable> Put(
      std::shared_ptr<const ServingTable> table) {
    MutexLock lock(mutex_);
    table_.swap(table);
    return table;
  }

 private:
  Mutex mutex_;
  std::shared_ptr<const ServingTable> table_ ABSL_GUARDED_BY(mutex_) =
      std::make_shared<const ServingTable>();
};

}  // namespace headrace::serving
