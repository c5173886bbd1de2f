#include "saved_model/model_writer.h"

#include "absl/strings/escaping.h"
#include "base/files/files.h"
#include "base/hash_map.h"
#include "graph/export.h"
#include "op/resource.h"
#include "saved_model/fingerprint.h"
#include "saved_model/loop_counters.h"
#include "tensor/tensor_proto.h"

namespace headrace {
namespace {

using tensorflow::SavedObject;
using tensorflow::StructuredValue;

constexpr int kSchemaVersion = 1;

}  // namespace

ModelWriter::ModelWriter()
    : graph_def_(model_.add_meta_graphs()),
      objects_(graph_def_->mutable_object_graph_def()) {
  model_.set_saved_model_schema_version(kSchemaVersion);
}

int ModelWriter::AddObject(SavedObject object, Value value) {
  const int id = num_objects();
  if (value) by_value_.emplace(value.id(), id);
  values_.push_back(std::move(value));
  *objects_->add_nodes() = std::move(object);
  return id;
}

// A value that is there, or that a constant of a graph has; else null.
static const Tensor* KnownTensor(const Value& value) {
  if (!value.is_symbolic()) return &value.tensor();
  const Node& n = *value.node();
  return n.def().Is(OpRole::kConstant) ? n.constant() : nullptr;
}

StatusOr<int> ModelWriter::AddKnown(SavedObject object, const Value& value) {
  if (!value.is_symbolic()) return AddObject(std::move(object), value);
  const Tensor* known = KnownTensor(value);
  if (known == nullptr) {
    return FailedPrecondition("tensor ", value.node()->name(), ":",
                              value.index(),
                              " of a graph has no value to be saved");
  }
  const int id = AddObject(std::move(object), Value(*known));
  by_value_.emplace(value.id(), id);
  return id;
}

StatusOr<int> ModelWriter::AddAsset(Value path) {
  const Tensor* known = KnownTensor(path);
  if (known == nullptr) {
    return InvalidArgument("an asset's path is a constant");
  }
  const Tensor& text = *known;
  if (text.dtype() != DType::kString || text.num_elements() != 1) {
    return InvalidArgument("an asset's path is one string");
  }
  const std::string& file = *text.data<std::string>();
  // Files of one name from several folders get names of their own; one file
  // given twice is copied once.
  std::string name(BaseName(file));
  const std::string base = name;
  int copies = 0;
  size_t index = 0;
  while (index < assets_.size()) {
    const auto& [other, taken] = assets_[index];
    if (other == file) break;
    if (taken == name) {
      name = absl::StrCat(base, "_", ++copies);
      index = 0;
      continue;
    }
    ++index;
  }
  if (index == assets_.size()) assets_.emplace_back(file, name);
  SavedObject object;
  object.mutable_asset()->set_asset_file_def_index(static_cast<int>(index));
  return AddKnown(std::move(object), path);
}

StatusOr<int> ModelWriter::ObjectOf(const Function& f, const Value& capture,
                                    size_t arg) {
  auto it = by_value_.find(capture.id());
  if (it != by_value_.end()) return it->second;
  if (capture.is_symbolic() && !capture.node()->def().Is(OpRole::kConstant)) {
    return FailedPrecondition(
        "Function ", f.name, " captures a tensor of a graph (",
        capture.node()->name(), "), which has no value to be saved");
  }
  if (capture.dtype() == DType::kResource) {
    const auto& handle = *capture.tensor().data<ResourceHandle>();
    return FailedPrecondition(
        "Tried to export a function which references an 'untracked' resource. "
        "TensorFlow objects (e.g. tf.Variable) captured by functions must be "
        "'tracked' by assigning them to an attribute of a tracked object or "
        "assigned to an attribute of the main object directly. See the "
        "information below:\n\tFunction name = b'",
        f.name, "'\n\tCaptured Tensor = <ResourceHandle(name=\"", handle.name,
        "\", device=\"", handle.device, "\", container=\"", handle.container,
        "\")>\n\tInternal Tensor = Tensor(\"", f.args[arg]->name(),
        ":0\", shape=(), dtype=resource)");
  }
  SavedObject constant;
  constant.mutable_constant();
  return AddKnown(std::move(constant), capture);
}

Status ModelWriter::AddFunction(const ConcreteFunction& f,
                                StructuredValue inputs,
                                StructuredValue outputs) {
  auto& all = *objects_->mutable_concrete_functions();
  if (all.contains(f.function()->name)) return OkStatus();
  tensorflow::SavedConcreteFunction saved;
  for (size_t i = 0; i < f.captures().size(); ++i) {
    HR_ASSIGN_OR_RETURN(
        int id, ObjectOf(*f.function(), f.captures()[i], f.num_args() + i));
    saved.add_bound_inputs(id);
  }
  *saved.mutable_canonicalized_input_signature() = std::move(inputs);
  *saved.mutable_output_signature() = std::move(outputs);
  all[f.function()->name] = std::move(saved);
  functions_.push_back(f.function());
  return OkStatus();
}

void ModelWriter::SetResourceFunctions(
    int id, std::shared_ptr<ConcreteFunction> create,
    std::shared_ptr<ConcreteFunction> initialize) {
  resources_[id] = {std::move(create), std::move(initialize)};
  resource_order_.push_back(id);
}

void ModelWriter::AddSignature(Signature signature) {
  signatures_.push_back(std::move(signature));
}

Status ModelWriter::CopyAssets(FileSystem* fs,
                               const std::string& folder) const {
  if (assets_.empty()) return OkStatus();
  const std::string to = JoinPath(folder, kAssetsFolder);
  HR_RETURN_IF_ERROR(CreateDirectories(fs, to));
  for (const auto& [path, name] : assets_) {
    std::string local;
    HR_ASSIGN_OR_RETURN(FileSystem * from, FileSystemFor(path, &local));
    // A model saved where it was loaded from has its assets already.
    if (from == fs && local == JoinPath(to, name)) continue;
    HR_RETURN_IF_ERROR(CopyFile(from, local, fs, JoinPath(to, name)));
  }
  return OkStatus();
}

Status ModelWriter::Write(const std::string& folder, const TrackablePtr& root,
                          const Options& options) {
  std::string local;
  HR_ASSIGN_OR_RETURN(FileSystem * fs, FileSystemFor(folder, &local));
  HR_ASSIGN_OR_RETURN(const GraphValues values, GraphValues::Gather(root));
  HR_RETURN_IF_ERROR(MakeGraph(values));
  HR_RETURN_IF_ERROR(
      ExportGraph(*graph_, {.strip_default_attrs = true, .effect_order = true},
                  graph_def_->mutable_graph_def()));
  NameGradients(graph_def_->mutable_graph_def());
  CountLoops(graph_def_);
  auto* info = graph_def_->mutable_meta_info_def();
  for (const std::string& tag : options.tags) info->add_tags(tag);
  info->set_stripped_default_attrs(true);
  info->set_tensorflow_version(options.version);
  info->set_tensorflow_git_version(options.git_version);
  for (const auto& [function, alias] : options.aliases) {
    (*info->mutable_function_aliases())[function] = alias;
  }
  HR_RETURN_IF_ERROR(CreateDirectories(fs, local));
  HR_RETURN_IF_ERROR(values.Write(fs, JoinPath(local, kVariablesPrefix), {}));
  HR_RETURN_IF_ERROR(CopyAssets(fs, local));
  // Before the model that it describes, so that no reader has one of another.
  HR_ASSIGN_OR_RETURN(
      const std::string index,
      ReadWholeFile(fs,
                    JoinPath(local, std::string(kVariablesPrefix) + ".index")));
  const tensorflow::FingerprintDef fingerprint = FingerprintOf(model_, index);
  HR_RETURN_IF_ERROR(WriteFileAtomically(fs, JoinPath(local, kFingerprintFile),
                                         fingerprint.SerializeAsString()));
  return WriteSavedModel(&model_, fs, local, options.in_chunks);
}

}  // namespace headrace
