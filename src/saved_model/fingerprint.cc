#include "saved_model/fingerprint.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <map>
#include <set>

#include "base/files/files.h"
#include "formats/chunked/chunked_proto.h"
#include "ops/string/hash.h"
#include "saved_model/function_names.h"

namespace headrace {
namespace {

using tensorflow::FingerprintDef;
using tensorflow::FunctionDef;
using tensorflow::GraphDef;
using tensorflow::SavedObjectGraph;

constexpr int kProducer = 4;  // upstream's of today

// A message as bytes that are always the same.
template <typename Proto>
std::string Bytes(const Proto& proto) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream out(&stream);
    out.SetSerializationDeterministic(true);
    proto.SerializeToCodedStream(&out);
  }
  return bytes;
}

FunctionNames PlainNames(const GraphDef& def) {
  FunctionNames names;
  for (const FunctionDef& f : def.library().function()) {
    const std::string& name = f.signature().name();
    names.emplace(name, WithoutNumber(name));
  }
  return names;
}

uint64_t HashOf(GraphDef def, const FunctionNames& names) {
  for (auto& n : *def.mutable_node()) RenameCalls(names, &n);
  for (FunctionDef& f : *def.mutable_library()->mutable_function()) {
    f.mutable_signature()->set_name(names.at(f.signature().name()));
    for (auto& n : *f.mutable_node_def()) RenameCalls(names, &n);
  }
  return Fingerprint64(Bytes(def));
}

uint64_t HashOf(SavedObjectGraph objects, const FunctionNames& names) {
  const auto plain = [&names](std::string* name) {
    auto it = names.find(*name);
    if (it != names.end()) *name = it->second;
  };
  for (auto& o : *objects.mutable_nodes()) {
    if (o.has_function()) {
      for (auto& f : *o.mutable_function()->mutable_concrete_functions()) {
        plain(&f);
      }
    } else if (o.has_bare_concrete_function()) {
      plain(
          o.mutable_bare_concrete_function()->mutable_concrete_function_name());
    }
  }
  // Functions of one name without their numbers: all of them, in any order.
  std::map<std::string, std::multiset<std::string>> functions;
  for (const auto& [name, f] : objects.concrete_functions()) {
    std::string key = name;
    plain(&key);
    functions[key].insert(Bytes(f));
  }
  objects.clear_concrete_functions();
  std::string bytes = Bytes(objects);
  for (const auto& [name, found] : functions) {
    bytes += name;
    for (const std::string& f : found) bytes += f;
  }
  return Fingerprint64(bytes);
}

}  // namespace

FingerprintDef FingerprintOf(const tensorflow::SavedModel& model,
                             StringView checkpoint_index) {
  const auto& graph = model.meta_graphs(0);
  const FunctionNames names = PlainNames(graph.graph_def());
  const std::map<std::string, tensorflow::SignatureDef> signatures(
      graph.signature_def().begin(), graph.signature_def().end());
  std::string described;
  for (const auto& [key, signature] : signatures) {
    absl::StrAppend(&described, key, Bytes(signature));
  }
  FingerprintDef made;
  if (model.ByteSizeLong() <= kMostProtoBytes) {
    made.set_saved_model_checksum(Fingerprint64(model.SerializeAsString()));
  }
  if (graph.graph_def().ByteSizeLong() <= kMostProtoBytes) {
    made.set_graph_def_program_hash(HashOf(graph.graph_def(), names));
  }
  made.set_signature_def_hash(Fingerprint64(described));
  made.set_saved_object_graph_hash(HashOf(graph.object_graph_def(), names));
  made.set_checkpoint_hash(Fingerprint64(checkpoint_index));
  made.mutable_version()->set_producer(kProducer);
  return made;
}

StatusOr<FingerprintDef> ReadFingerprint(const std::string& folder) {
  std::string local;
  HR_ASSIGN_OR_RETURN(FileSystem * fs, FileSystemFor(folder, &local));
  const std::string path = JoinPath(local, kFingerprintFile);
  if (!FileExists(fs, path)) {
    return NotFound(JoinPath(folder, kFingerprintFile), " not found");
  }
  HR_ASSIGN_OR_RETURN(const std::string bytes, ReadWholeFile(fs, path));
  FingerprintDef found;
  if (!found.ParseFromString(bytes)) {
    return DataLoss(JoinPath(folder, kFingerprintFile), " is damaged");
  }
  return found;
}

}  // namespace headrace
