// What others are told of a board.
#include <algorithm>

#include "serving/manager/board.h"

namespace headrace::serving {

std::string TextOf(const ServableId& id) {
  return absl::StrCat("{name: ", id.name, " version: ", id.version, "}");
}

std::shared_ptr<const ServingTable> Board::Table(bool with_use) const {
  auto table = std::make_shared<ServingTable>();
  for (const auto& [name, model] : models_) {
    ServedModel served;
    bool serves_wanted = false;
    for (const auto& [number, v] : model.versions) {
      if (v.state == ModelVersionStatus::AVAILABLE) {
        served.versions[number] = {v.servable, with_use ? v.used : nullptr};
        serves_wanted |= v.wanted;
        // One that a request waits for is waited for by the next one, too.
      } else if (Serves(v)) {
        served.on_demand.insert(number);
      }
    }
    if (!served.on_demand.empty()) {
      served.latest_on_demand =
          served.versions.empty() ||
          (serves_wanted &&
           *served.on_demand.rbegin() > served.versions.rbegin()->first);
    }
    if (served.versions.empty() && served.on_demand.empty() &&
        model.labels.empty()) {
      continue;
    }
    served.labels = model.labels;
    table->emplace(name, std::move(served));
  }
  return table;
}

Settled Board::SettledOf(const std::string& name, bool looks_again,
                         bool tries_again) const {
  const auto it = models_.find(name);
  if (it == models_.end() || !it->second.configured) {
    return {Settled::kServes, ""};
  }
  const ModelRecord& model = it->second;
  if (Serves(model)) return {Settled::kServes, ""};
  const VersionRecord* highest = nullptr;
  int64_t number = 0;
  for (const auto& [n, v] : model.versions) {
    if (!v.wanted) continue;
    if (!v.spent && (tries_again || !v.waits)) return {Settled::kNotYet, ""};
    highest = &v;
    number = n;
  }
  constexpr char kDueTo[] = " due to error: ";
  if (model.unloaded) {
    return {Settled::kFailed, absl::StrCat("{name: ", name, "}", kDueTo,
                                           "it was unloaded by name")};
  }
  if (highest != nullptr) {
    return {Settled::kFailed,
            absl::StrCat(TextOf({name, number}), kDueTo,
                         internal::Printable(highest->status))};
  }
  if (!model.listed || looks_again) return {Settled::kNotYet, ""};
  const Status why =
      model.listing.ok()
          ? NotFound("No wanted version under base path ", model.base_path)
          : model.listing;
  return {Settled::kFailed,
          absl::StrCat("{name: ", name, "}", kDueTo, internal::Printable(why))};
}

bool Board::Available(const std::string& name, int64_t version) const {
  const auto model = models_.find(name);
  if (model == models_.end()) return false;
  const auto it = model->second.versions.find(version);
  return it != model->second.versions.end() && Serves(it->second);
}

bool Board::Serves(const VersionRecord& v) const {
  if (v.state == ModelVersionStatus::AVAILABLE || OnDemand(v)) return true;
  return v.wanted && !v.spent && (v.asked || v.put_out);
}

bool Board::Serves(const ModelRecord& model) const {
  return std::any_of(model.versions.begin(), model.versions.end(),
                     [&](const auto& entry) { return Serves(entry.second); });
}

bool Board::Ready() const {
  for (const auto& [name, model] : models_) {
    if (model.configured && !model.unloaded && !Serves(model)) return false;
  }
  return true;
}

Status Board::StatusOf(const ModelSpec& spec,
                       GetModelStatusResponse* response) const {
  const auto model = models_.find(spec.name());
  const bool one = spec.version_choice_case() == ModelSpec::kVersion;
  const auto add = [&](int64_t number, const VersionRecord& v) {
    auto* status = response->add_model_version_status();
    status->set_version(number);
    status->set_state(v.state);
    // An error shows once nothing is tried any more.
    const Status shown =
        v.state == ModelVersionStatus::END ? v.status : OkStatus();
    status->mutable_status()->set_error_code(
        static_cast<tensorflow::error::Code>(shown.raw_code()));
    status->mutable_status()->set_error_message(std::string(shown.message()));
  };
  if (one) {
    const int64_t number = spec.version().value();
    if (model != models_.end()) {
      const auto it = model->second.versions.find(number);
      if (it != model->second.versions.end()) {
        add(number, it->second);
        return OkStatus();
      }
    }
    return NotFound("Could not find version ", number, " of model ",
                    spec.name());
  }
  if (model == models_.end() || model->second.versions.empty()) {
    return NotFound("Could not find any versions of model ", spec.name());
  }
  const auto& versions = model->second.versions;
  for (auto it = versions.rbegin(); it != versions.rend(); ++it) {
    add(it->first, it->second);
  }
  return OkStatus();
}

}  // namespace headrace::serving
