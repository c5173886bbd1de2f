// What the server knows of its models' versions: what is wanted of each, and
// how far it is. A value without threads; who has one locks it.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "serving/manager/serving_table.h"
#include "serving/manager/transition.h"
#include "serving/manager/versions.h"

namespace headrace::serving {

using tensorflow::serving::ModelVersionStatus;

struct VersionRecord {
  std::string folder;
  bool wanted = false;
  ModelVersionStatus::State state = ModelVersionStatus::START;
  Status status;        // of the last try to load it
  bool queued = false;  // a load was asked for
  bool loaded = false;  // and not found by requests yet
  bool spent = false;   // failed, and not tried again
  bool waits = false;   // between two tries
  bool asked = false;   // by a request
  bool to_put_out = false;
  bool put_out = false;     // for the memory's sake: comes back on demand
  int refusals = 0;         // loads on demand that found no room
  bool never_fits = false;  // into the memory of all models
  int64_t ticket = 0;       // of the load that counts; 0: none
  int tries = 0;
  uint64_t bytes = 0;  // of memory, counted for it
  ServablePtr servable;
  std::shared_ptr<LastUse> used;
};

struct ModelRecord {
  bool configured = false;
  bool unloaded = false;  // by name: none of its versions is wanted
  std::string base_path;
  VersionPolicy policy;
  Labels labels;
  // Ever seen, but for kMostPastVersions.
  std::map<int64_t, VersionRecord> versions;
  bool listed = false;   // the base path was looked at
  Status listing;        // how the last look ended
  std::string warnings;  // that were written last
};

// A load to begin.
struct LoadJob {
  ServableId id;
  std::string folder;
  int64_t ticket = 0;
};

// Whether a model came to serve.
struct Settled {
  enum Kind { kNotYet, kServes, kFailed };
  Kind kind = kNotYet;
  std::string error;  // "{name: M version: V} due to error: ..."
};

// "{name: M version: V}"
std::string TextOf(const ServableId& id);

class Board {
 public:
  explicit Board(bool lazy) : lazy_(lazy) {}

  // Models in place of those present; what failed is tried again. Returns the
  // names that are new.
  std::set<std::string> SetModels(
      const tensorflow::serving::ModelServerConfig& config);
  // By name; false where no such model is configured. What is wanted of one
  // that is brought back its next listing says.
  bool Unload(const std::string& name);
  bool BringBack(const std::string& name);
  // The versions that lie below a model's base path, or why that is not known.
  struct Looked {
    bool changed = false;               // steps may be due
    std::vector<std::string> warnings;  // to be written to the log
  };
  Looked SetListing(const std::string& name,
                    const StatusOr<std::map<int64_t, std::string>>& there,
                    std::vector<std::string> warnings);

  // Takes all steps that are due: what was loaded becomes available, loads to
  // begin, versions to let go of once requests cannot find them any more. The
  // table after that is the one for requests.
  void Advance(std::deque<LoadJob>* loads, std::vector<ServablePtr>* garbage);
  std::shared_ptr<const ServingTable> Table(bool with_use) const;

  // The load that a ticket is of; null where it does not count any more.
  VersionRecord* Loading(const LoadJob& job);
  void Begin(VersionRecord& v);
  void Succeed(VersionRecord& v, ServablePtr servable);
  // Whether the load is to be tried again.
  bool Fail(VersionRecord& v, const Status& status, int most_retries);
  // A load on demand finds no room: the next request may try it again.
  void Refuse(VersionRecord& v, const Status& status);
  // Its memory was freed.
  void Unloaded(const ServableId& id);
  // A request wants the version; false where it is not on demand.
  bool Ask(const ServableId& id);
  // Gives up what is not loaded, and lets go of all that is.
  void End(std::vector<ServablePtr>* garbage);

  // Whether there are further looks at the base path to wait for, and further
  // tries to load.
  Settled SettledOf(const std::string& name, bool looks_again,
                    bool tries_again) const;
  // Whether requests find a version, be it loaded then.
  bool Available(const std::string& name, int64_t version) const;
  // Whether every model has a version to answer with.
  bool Ready() const;
  // Errors of Models::StatusOf.
  Status StatusOf(const ModelSpec& spec,
                  GetModelStatusResponse* response) const;

  const std::map<std::string, ModelRecord>& models() const { return models_; }
  VersionRecord* Find(const ServableId& id);

 private:
  bool OnDemand(const VersionRecord& v) const;
  bool Serves(const VersionRecord& v) const;
  bool Serves(const ModelRecord& model) const;
  std::vector<VersionView> ViewsOf(const ModelRecord& model) const;
  // Whether it was another.
  bool SetWish(ModelRecord& model, const std::set<int64_t>& wanted);

  const bool lazy_;
  std::map<std::string, ModelRecord> models_;
  int64_t last_ticket_ = 0;
};

// Lets requests find a version no longer; who holds it holds it on.
void LetGo(VersionRecord& v, std::vector<ServablePtr>* garbage);

}  // namespace headrace::serving
