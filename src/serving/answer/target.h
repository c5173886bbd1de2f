// What a request means: a version, one of its signatures, and some outputs.
#pragma once

#include <string>
#include <vector>

#include "serving/models.h"

namespace headrace::serving {

struct Target {
  ServablePtr servable;
  const Signature* signature = nullptr;
};

// InvalidArgument "Missing ModelSpec" where the request has none, the errors of
// Models::Find, and `no_signature`, which is given the signature's key.
StatusOr<Target> FindTarget(Models& models, bool has_spec,
                            const ModelSpec& spec,
                            Status (*no_signature)(const std::string& key));

// What responses say of it: the signature and version that were used, never the
// label.
void SetSpec(const Target& target, ModelSpec* spec);

// Names between commas, as errors list them.
std::string JoinedNames(const std::vector<Argument>& arguments);
// The place of a name among arguments, which are sorted by name; or -1.
int PlaceOf(const std::vector<Argument>& arguments, StringView name);

}  // namespace headrace::serving
