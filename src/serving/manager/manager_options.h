// How a ModelManager works: mostly flags of the server, under their names.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>

#include "serving/model/servable.h"
#include "tensorflow_serving/config/model_server_config.pb.h"

namespace headrace::serving {

enum class Severity { kInfo, kWarning, kError };

// A load that ended: for metrics.
struct LoadEvent {
  ServableId id;
  Status status;       // of the last try
  int tries = 0;       // so far
  double seconds = 0;  // of the last try, warm-up included
  uint64_t bytes = 0;  // estimate of the memory it takes
};

struct ManagerOptions {
  // Seconds between looks at the base paths. From 0 down: one look at the start
  // and one at each reload.
  int64_t file_system_poll_wait_seconds = 1;
  // Tries after the first one; a negative time between them is none.
  int max_num_load_retries = 5;
  int64_t load_retry_interval_micros = 60'000'000;
  // 0: one. The loads of Start have more.
  int num_load_threads = 0;
  int num_unload_threads = 0;
  bool allow_version_labels_for_unavailable_models = false;
  bool flush_filesystem_caches = true;
  Tags saved_model_tags = {"serve"};
  // Empty: not polled. A config in it that is refused is logged and changes
  // nothing.
  std::string model_config_file;
  int64_t model_config_file_poll_wait_seconds = 0;  // 0: not polled

  // Versions are loaded when a request first finds them.
  bool lazy_load_models = false;
  // By the estimate of each version; 0: no limit. Before a load that would pass
  // it, the least recently used versions that no request holds are put out, and
  // come back on demand; but not those of pinned models, and not those that
  // serve on only because a newer one is not loaded.
  uint64_t total_model_memory_limit_bytes = 0;
  std::set<std::string> pinned_models;
  // Of the files of one version, which is not loaded beyond; 0: no limit.
  uint64_t max_model_bytes = 0;
  // A model that fails is no error of Start, which waits for one try of each.
  bool start_with_failed_models = false;

  // What to load a version with; the tags are those above. Empty: the default.
  std::function<StatusOr<ServableOptions>(const ServableId&,
                                          const std::string& folder)>
      servable_options;
  // Run on a load thread before a version becomes available; an error is one of
  // the load. Empty: nothing.
  std::function<Status(const ServablePtr&)> warm_up;
  // Empty: Servable::Load.
  std::function<StatusOr<ServablePtr>(
      const ServableId&, const std::string& folder, const ServableOptions&)>
      load;

  // Asked by who brings a config, before that is in force: an error refuses it;
  // what is given is called when it is in force (quick: under the manager's
  // lock). Empty: nothing.
  std::function<StatusOr<std::function<void()>>(
      const tensorflow::serving::ModelServerConfig&)>
      prepare;

  // Where messages go; empty: standard error. From any thread.
  std::function<void(Severity, const std::string& text)> log;
  // After each try to load, and after each unload; may be empty. From threads
  // of the manager: not to call it back.
  std::function<void(const LoadEvent&)> on_load;
  std::function<void(const ServableId&)> on_unload;
};

}  // namespace headrace::serving
