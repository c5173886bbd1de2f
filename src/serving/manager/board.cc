#include "serving/manager/board.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"

namespace headrace::serving {
namespace {

// So that a version that is wanted anew is tried as if never seen.
void BeginAnew(VersionRecord& v) {
  v.spent = v.asked = v.put_out = false;
  v.tries = 0;
  if (v.state != ModelVersionStatus::END) return;
  v.state = ModelVersionStatus::START;
  v.status = OkStatus();
}

// Nothing is done for it any more, and nothing is loaded.
void Finish(VersionRecord& v) {
  v.state = ModelVersionStatus::END;
  v.queued = v.loaded = v.waits = v.asked = v.put_out = false;
  v.ticket = 0;
}

void MakeAvailable(VersionRecord& v) {
  v.state = ModelVersionStatus::AVAILABLE;
  v.status = OkStatus();
  v.loaded = v.queued = v.asked = v.put_out = false;
  v.ticket = 0;
  v.tries = 0;
}

bool IsOut(const VersionRecord& v) {
  return !v.queued && (v.state == ModelVersionStatus::START ||
                       v.state == ModelVersionStatus::END);
}

// What may be forgotten: nothing is loaded, nor going to be.
bool IsOver(const VersionRecord& v) {
  return v.state == ModelVersionStatus::END && !v.wanted && IsOut(v) &&
         v.bytes == 0;
}

void ForgetOldest(std::map<int64_t, VersionRecord>& versions) {
  if (versions.size() <= kMostPastVersions) return;
  auto over = static_cast<size_t>(
      std::count_if(versions.begin(), versions.end(),
                    [](const auto& entry) { return IsOver(entry.second); }));
  for (auto it = versions.begin(); over > kMostPastVersions;) {
    if (!IsOver(it->second)) {
      ++it;
      continue;
    }
    it = versions.erase(it);
    --over;
  }
}

// What a look at a base path says that users should know.
std::vector<std::string> WarningsOf(const std::string& name,
                                    const ModelRecord& model, const Wish& wish,
                                    bool empty) {
  std::vector<std::string> warnings;
  if (!model.listing.ok()) {
    warnings.push_back(absl::StrCat("Could not find base path ",
                                    model.base_path, " for servable ", name,
                                    ": ", internal::Printable(model.listing)));
  } else if (empty) {
    warnings.push_back(absl::StrCat(
        "No versions of servable ", name, " found under base path ",
        model.base_path,
        ". Did you forget to name your leaf directory as a number (eg. "
        "'/1/')?"));
  }
  for (const int64_t version : wish.missing) {
    warnings.push_back(absl::StrCat("Version ", version, " of servable ", name,
                                    ", which was requested to be served as a "
                                    "specific version in the model's policy, "
                                    "was not found in the file system"));
  }
  return warnings;
}

}  // namespace

std::set<std::string> Board::SetModels(
    const tensorflow::serving::ModelServerConfig& config) {
  std::set<std::string> named, added;
  for (const auto& c : config.model_config_list().config()) {
    ModelRecord& model = models_[c.name()];
    named.insert(c.name());
    if (!model.configured) added.insert(c.name());
    model.configured = true;
    model.base_path = c.base_path();
    model.policy = c.model_version_policy();
    model.labels = {c.version_labels().begin(), c.version_labels().end()};
    model.listed = false;
    for (auto& [number, v] : model.versions) {
      if (v.wanted && v.spent) BeginAnew(v);
    }
  }
  for (auto& [name, model] : models_) {
    if (named.contains(name)) continue;
    model.configured = model.unloaded = false;
    model.labels.clear();
    SetWish(model, {});
  }
  return added;
}

bool Board::Unload(const std::string& name) {
  const auto it = models_.find(name);
  if (it == models_.end() || !it->second.configured) return false;
  it->second.unloaded = true;
  SetWish(it->second, {});
  return true;
}

bool Board::BringBack(const std::string& name) {
  const auto it = models_.find(name);
  if (it == models_.end() || !it->second.configured) return false;
  ModelRecord& model = it->second;
  model.unloaded = model.listed = false;
  for (auto& [number, v] : model.versions) {
    if (v.wanted && v.spent) BeginAnew(v);
  }
  return true;
}

Board::Looked Board::SetListing(
    const std::string& name,
    const StatusOr<std::map<int64_t, std::string>>& there,
    std::vector<std::string> warnings) {
  const auto it = models_.find(name);
  if (it == models_.end() || !it->second.configured) return {};
  ModelRecord& model = it->second;
  model.listed = true;
  if (model.unloaded) return {};
  model.listing = there.status();
  Wish wish;
  bool changed = false;
  if (there.ok()) {
    wish = WishOf(model.policy, *there);
    for (const int64_t number : wish.wanted) {
      VersionRecord& v = model.versions[number];
      const std::string& folder = there->at(number);
      if (IsOut(v)) v.folder = folder;
      if (v.folder == folder) continue;
      warnings.push_back(absl::StrCat("Version ", number, " of servable ", name,
                                      " stays the one of ", v.folder,
                                      "; that of ", folder, " is not loaded"));
    }
    changed = SetWish(model, wish.wanted);
  }
  for (auto& text :
       WarningsOf(name, model, wish, there.ok() && there->empty())) {
    warnings.push_back(std::move(text));
  }
  const std::string all = absl::StrJoin(warnings, "\n");
  if (all == model.warnings) return {changed, {}};  // said before
  model.warnings = all;
  return {changed, std::move(warnings)};
}

bool Board::SetWish(ModelRecord& model, const std::set<int64_t>& wanted) {
  bool changed = false;
  for (auto& [number, v] : model.versions) {
    const bool was_wanted = std::exchange(v.wanted, wanted.contains(number));
    changed |= v.wanted != was_wanted;
    if (v.wanted && !was_wanted) BeginAnew(v);
    if (v.wanted) continue;
    if (v.state == ModelVersionStatus::START || v.waits) Finish(v);
  }
  return changed;
}

bool Board::OnDemand(const VersionRecord& v) const {
  return v.wanted && IsOut(v) && !v.spent && !v.asked && (lazy_ || v.put_out);
}

std::vector<VersionView> Board::ViewsOf(const ModelRecord& model) const {
  std::vector<VersionView> views;
  for (const auto& [number, v] : model.versions) {
    VersionView view{number, v.wanted, VersionView::kOut, OnDemand(v)};
    if (v.state == ModelVersionStatus::AVAILABLE) {
      view.state = VersionView::kReady;
    } else if (!IsOut(v)) {
      view.state = VersionView::kBusy;
    } else if (v.spent) {
      view.state = VersionView::kSpent;
    }
    // Of thousands that were unloaded long ago nothing is to be said.
    if (view.wanted || !IsOut(v)) views.push_back(view);
  }
  return views;
}

void LetGo(VersionRecord& v, std::vector<ServablePtr>* garbage) {
  garbage->push_back(v.servable);
  v.servable = nullptr;
  v.state = ModelVersionStatus::UNLOADING;
  v.asked = false;
}

void Board::Advance(std::deque<LoadJob>* loads,
                    std::vector<ServablePtr>* garbage) {
  for (auto& [name, model] : models_) {
    for (auto& [number, v] : model.versions) {
      if (v.loaded) MakeAvailable(v);
      if (v.to_put_out && v.state == ModelVersionStatus::AVAILABLE) {
        LetGo(v, garbage);
        v.put_out = true;
      }
      v.to_put_out = false;
    }
    ForgetOldest(model.versions);
    while (const auto step = NextStep(ViewsOf(model))) {
      VersionRecord& v = model.versions[step->version];
      if (step->kind == Step::kUnload) {
        LetGo(v, garbage);
        continue;
      }
      loads->push_back({{name, step->version}, v.folder, ++last_ticket_});
      v.state = ModelVersionStatus::START;
      v.queued = true;
      v.ticket = last_ticket_;
    }
  }
}

VersionRecord* Board::Find(const ServableId& id) {
  const auto model = models_.find(id.name);
  if (model == models_.end()) return nullptr;
  const auto it = model->second.versions.find(id.version);
  return it == model->second.versions.end() ? nullptr : &it->second;
}

VersionRecord* Board::Loading(const LoadJob& job) {
  VersionRecord* v = Find(job.id);
  return v != nullptr && v->ticket == job.ticket ? v : nullptr;
}

void Board::Begin(VersionRecord& v) {
  v.state = ModelVersionStatus::LOADING;
  v.waits = v.never_fits = false;
  ++v.tries;
}

void Board::Succeed(VersionRecord& v, ServablePtr servable) {
  v.servable = std::move(servable);
  v.loaded = true;
}

bool Board::Fail(VersionRecord& v, const Status& status, int most_retries) {
  v.status = status;
  if (v.wanted && v.tries <= most_retries) {
    v.waits = true;
    return true;
  }
  Finish(v);
  v.spent = true;
  return false;
}

void Board::Refuse(VersionRecord& v, const Status& status) {
  Finish(v);
  v.status = status;
  v.state = ModelVersionStatus::START;
  v.put_out = v.wanted;
  v.tries = 0;
  ++v.refusals;
}

void Board::Unloaded(const ServableId& id) {
  VersionRecord* v = Find(id);
  if (v == nullptr || v->state != ModelVersionStatus::UNLOADING) return;
  v->state = v->wanted ? ModelVersionStatus::START : ModelVersionStatus::END;
  v->bytes = 0;
}

bool Board::Ask(const ServableId& id) {
  VersionRecord* v = Find(id);
  if (v == nullptr || !v->wanted || v->spent) return false;
  if (v->state != ModelVersionStatus::AVAILABLE) v->asked = true;
  return true;
}

void Board::End(std::vector<ServablePtr>* garbage) {
  for (auto& [name, model] : models_) {
    for (auto& [number, v] : model.versions) {
      v.wanted = false;
      if (v.servable != nullptr) {
        Finish(v);
        LetGo(v, garbage);
      } else if (v.state != ModelVersionStatus::UNLOADING) {
        Finish(v);
      }
    }
  }
}

}  // namespace headrace::serving
