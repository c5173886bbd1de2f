#include "command/source.h"

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/coding.h"
#include "base/crc32c.h"
#include "base/files/files.h"
#include "formats/checkpoint_writer.h"
#include "formats/chunked/chunked_proto.h"
#include "formats/events.h"
#include "formats/proto_text.h"
#include "formats/table.h"
#include "google/protobuf/text_format.h"
#include "google/protobuf/unknown_field_set.h"
#include "saved_model/model_file.h"
#include "tensorflow/core/util/event.pb.h"
#include "train/checkpoint_state.h"

namespace headrace::command {
namespace {

using tensorflow::GraphDef;
using tensorflow::MetaGraphDef;

constexpr size_t kRecordHead = 12;  // its length and the checksum of that
constexpr size_t kMagicBytes = 8;

StatusOr<std::string> BytesAt(const RandomAccessFile& file, uint64_t offset,
                              size_t count) {
  std::string bytes(count, '\0');
  HR_RETURN_IF_ERROR(file.Read(offset, absl::MakeSpan(bytes)));
  return bytes;
}

bool IsTable(const RandomAccessFile& file) {
  if (file.size() < kMagicBytes) return false;
  auto bytes = BytesAt(file, file.size() - kMagicBytes, kMagicBytes);
  return bytes.ok() && LoadFixed64(bytes->data()) == kTableMagic;
}

bool IsPacked(StringView head) {
  return absl::StartsWith(head, "\x1f\x8b") ||
         (head.size() > 1 && head[0] == '\x78' &&
          (static_cast<unsigned char>(head[0]) * 256 +
           static_cast<unsigned char>(head[1])) %
                  31 ==
              0);
}

bool IsRecords(StringView head) {
  return head.size() == kRecordHead &&
         LoadFixed32(head.data() + 8) ==
             MaskCrc(Crc32c(StringView(head.data(), 8)));
}

bool IsEvents(FileSystem* fs, const std::string& path) {
  auto reader = EventReader::Open(fs, path);
  tensorflow::Event event;
  if (!reader.ok()) return false;
  const auto more = (*reader)->Next(&event);
  return more.ok() && *more && event.has_file_version();
}

// Checkpoints of bundles are several files: any of them stands for all.
std::string PrefixOf(StringView path) {
  if (absl::ConsumeSuffix(&path, ".index")) return std::string(path);
  if (const size_t at = path.rfind(".data-"); at != StringView::npos) {
    return std::string(path.substr(0, at));
  }
  return std::string(path);
}

bool IsPartOfBundle(FileSystem* fs, const std::string& path) {
  const std::string prefix = PrefixOf(path);
  return prefix != path && FileExists(fs, CheckpointIndexPath(prefix));
}

StatusOr<Source> FindInFolder(Source s) {
  if (ContainsSavedModel(s.folder)) {
    s.kind = SourceKind::kSavedModel;
    return s;
  }
  HR_ASSIGN_OR_RETURN(const std::string latest, LatestCheckpoint(s.fs, s.path));
  if (latest.empty()) {
    return NotFound(s.given,
                    ": expected a SavedModel (saved_model.pb) or checkpoints "
                    "(a file named checkpoint) in the folder");
  }
  s.kind = SourceKind::kCheckpoint;
  s.path = latest;
  return s;
}

StatusOr<Source> FindInFile(Source s) {
  HR_ASSIGN_OR_RETURN(const auto file, s.fs->OpenToRead(s.path));
  const size_t size = std::min<uint64_t>(file->size(), kRecordHead);
  HR_ASSIGN_OR_RETURN(const std::string head, BytesAt(*file, 0, size));
  if (IsTable(*file) || IsPartOfBundle(s.fs, s.path)) {
    s.kind = SourceKind::kCheckpoint;
    s.path = PrefixOf(s.path);
    return s;
  }
  if (IsRecords(head)) {
    s.kind =
        IsEvents(s.fs, s.path) ? SourceKind::kEvents : SourceKind::kRecords;
    return s;
  }
  const bool is_graph_name =
      absl::EndsWith(s.path, ".pb") || absl::EndsWith(s.path, ".pbtxt") ||
      absl::EndsWith(s.path, ".meta") || absl::EndsWith(s.path, ".txt") ||
      absl::EndsWith(s.path, kChunkedSuffix);
  if (IsPacked(head) && !is_graph_name) {
    s.kind = SourceKind::kRecords;
    s.packed = true;
    return s;
  }
  const StringView name = BaseName(s.path);
  if (name == kModelFile || name == kModelTextFile ||
      name == kModelChunksFile) {
    s.kind = SourceKind::kSavedModel;
    const auto folder_of = [](const std::string& file) {
      const StringView folder = DirName(file);
      return folder.empty() ? std::string(".") : std::string(folder);
    };
    s.path = folder_of(s.path);
    s.folder = folder_of(s.folder);
    return s;
  }
  bool is_meta_graph = false;
  auto graph = ReadGraphFile(s.fs, s.path, &is_meta_graph);
  if (graph.ok()) {
    s.kind = is_meta_graph ? SourceKind::kMetaGraph : SourceKind::kGraph;
    s.graph = *std::move(graph);
    return s;
  }
  if (is_graph_name) return graph.status();
  return InvalidArgument(s.given,
                         ": expected a SavedModel, a checkpoint, a graph (.pb, "
                         ".pbtxt), an event file or a TFRecord file");
}

// A message that has read all of the bytes as fields that it knows.
template <typename Message>
bool ParsesWhole(StringView bytes, Message* message) {
  return message->ParseFromArray(bytes.data(),
                                 static_cast<int>(bytes.size())) &&
         message->GetReflection()->GetUnknownFields(*message).empty();
}

// Text begins with what a name may begin with, or a remark.
bool LooksLikeText(StringView bytes) {
  return bytes.substr(0, 64).find_first_of(StringView("\0\x01\x02\x03", 4)) ==
             StringView::npos &&
         bytes.find_first_of(":{") != StringView::npos;
}

std::string KindNames(unsigned kinds) {
  std::vector<StringView> names;
  for (unsigned k = 0; k <= static_cast<unsigned>(SourceKind::kRecords); ++k) {
    const auto kind = static_cast<SourceKind>(k);
    if ((kinds & Kinds(kind)) != 0) names.push_back(KindName(kind));
  }
  return absl::StrJoin(names, " or ");
}

bool IsPlausible(const GraphDef& g) {
  if (g.node_size() == 0 && !g.has_library() && !g.has_versions()) return false;
  for (const auto& n : g.node()) {
    if (n.name().empty() || n.op().empty()) return false;
  }
  return true;
}

}  // namespace

StringView KindName(SourceKind kind) {
  switch (kind) {
    case SourceKind::kSavedModel:
      return "a SavedModel";
    case SourceKind::kCheckpoint:
      return "a checkpoint";
    case SourceKind::kGraph:
      return "a GraphDef";
    case SourceKind::kMetaGraph:
      return "a MetaGraphDef";
    case SourceKind::kEvents:
      return "an event file";
    case SourceKind::kRecords:
      return "a TFRecord file";
  }
  return "";
}

StatusOr<Source> FindSource(const std::string& path) {
  Source s;
  s.given = path;
  HR_ASSIGN_OR_RETURN(s.fs, FileSystemFor(path, &s.path));
  s.folder = path;
  for (std::string* p : {&s.path, &s.folder}) {
    while (p->size() > 1 && p->ends_with('/')) p->pop_back();
  }
  const StatusOr<FileStat> stat = s.fs->Stat(s.path);
  if (stat.ok()) {
    return stat->is_directory ? FindInFolder(std::move(s))
                              : FindInFile(std::move(s));
  }
  if (CheckpointExists(s.fs, s.path)) {
    s.kind = SourceKind::kCheckpoint;
    return s;
  }
  if (stat.status().code() != absl::StatusCode::kNotFound) return stat.status();
  return NotFound(path, ": there is no such file, folder or checkpoint");
}

StatusOr<Source> FindSource(const Arguments& args,
                            absl::Span<const OptionDef> options) {
  HR_ASSIGN_OR_RETURN(Source s, FindSource(args.positionals()[0]));
  for (const OptionDef& o : options) {
    if (o.kinds == 0 || !args.Has(o.name) || (o.kinds & Kinds(s.kind)) != 0) {
      continue;
    }
    return UsageError(absl::StrCat("--", o.name, " belongs to ",
                                   KindNames(o.kinds), ", and ", s.given,
                                   " is ", KindName(s.kind)));
  }
  return s;
}

StatusOr<ModelFile> ReadModel(const Source& s) {
  if (s.kind != SourceKind::kSavedModel) {
    return InvalidArgument(s.given, ": expected a SavedModel, got ",
                           KindName(s.kind));
  }
  return ReadSavedModel(s.folder);
}

StatusOr<std::shared_ptr<MetaGraphDef>> ReadGraphFile(FileSystem* fs,
                                                      const std::string& path,
                                                      bool* is_meta_graph) {
  auto meta = std::make_shared<MetaGraphDef>();
  *is_meta_graph = false;
  // Nothing but its name says that a file is in chunks, and nothing what of.
  if (absl::EndsWith(path, kChunkedSuffix)) {
    HR_RETURN_IF_ERROR(ReadChunkedProto(fs, path, meta->mutable_graph_def()));
    return meta;
  }
  HR_ASSIGN_OR_RETURN(const std::string bytes, ReadWholeFile(fs, path));
  if (bytes.size() > kMostProtoBytes) {
    return DataLoss(path, ": a graph has at most ", kMostProtoBytes,
                    " bytes, this file ", bytes.size());
  }
  if (ParsesWhole(bytes, meta->mutable_graph_def()) &&
      IsPlausible(meta->graph_def())) {
    return meta;
  }
  meta->Clear();
  if (ParsesWhole(bytes, meta.get()) && IsPlausible(meta->graph_def())) {
    *is_meta_graph = true;
    return meta;
  }
  meta->Clear();
  if (!LooksLikeText(bytes)) {
    return DataLoss(path, ": expected a GraphDef or a MetaGraphDef, and the ",
                    bytes.size(), " bytes are neither");
  }
  const auto as_graph = ReadProtoText(bytes, meta->mutable_graph_def());
  if (!as_graph) return meta;
  meta->Clear();
  *is_meta_graph = true;
  if (!ReadProtoText(bytes, meta.get())) return meta;
  return DataLoss(path, ": expected the text of a GraphDef or a MetaGraphDef: ",
                  as_graph->line, ":", as_graph->column, ": ",
                  as_graph->message);
}

Status WriteFile(const std::string& path, StringView bytes) {
  std::string local;
  HR_ASSIGN_OR_RETURN(FileSystem * fs, FileSystemFor(path, &local));
  return WriteFileAtomically(fs, local, bytes);
}

Status WriteGraphFile(const GraphDef& graph, const std::string& path) {
  std::string bytes;
  if (absl::EndsWith(path, kChunkedSuffix)) {
    std::string local;
    HR_ASSIGN_OR_RETURN(FileSystem * fs, FileSystemFor(path, &local));
    GraphDef parts = graph;
    return WriteChunkedProto(&parts, fs, local);
  }
  if (absl::EndsWith(path, ".pbtxt") || absl::EndsWith(path, ".txt")) {
    if (!google::protobuf::TextFormat::PrintToString(graph, &bytes)) {
      return Internal(path, ": the graph cannot be printed");
    }
  } else if (graph.ByteSizeLong() > kMostProtoBytes) {
    return ResourceExhausted(path, ": the graph would have ",
                             graph.ByteSizeLong(), " bytes, at most ",
                             kMostProtoBytes, " are possible in one piece; ",
                             kChunkedSuffix, " files are in several");
  } else {
    bytes = graph.SerializeAsString();
  }
  return WriteFile(path, bytes);
}

}  // namespace headrace::command
