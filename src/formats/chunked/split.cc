#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "base/files/replace_file.h"
#include "formats/chunked/chunked_proto.h"
#include "formats/chunked/riegeli.h"
#include "tensorflow/tools/proto_splitter/chunk.pb.h"

namespace headrace {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using tensorflow::proto_splitter::ChunkedField;
using tensorflow::proto_splitter::ChunkedMessage;
using tensorflow::proto_splitter::ChunkInfo;
using tensorflow::proto_splitter::ChunkMetadata;
using tensorflow::proto_splitter::FieldIndex;
using MapKey = FieldIndex::MapKey;

constexpr int kVersion = 1;
// A field smaller than this part of a chunk stays with the rest.
constexpr uint64_t kFieldsOfChunk = 64;

void SetMapKey(const Message& entry, const FieldDescriptor* f, MapKey* key) {
  const auto* r = entry.GetReflection();
  switch (f->cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return key->set_boolean(r->GetBool(entry, f));
    case FieldDescriptor::CPPTYPE_UINT32:
      return key->set_ui32(r->GetUInt32(entry, f));
    case FieldDescriptor::CPPTYPE_UINT64:
      return key->set_ui64(r->GetUInt64(entry, f));
    case FieldDescriptor::CPPTYPE_INT32:
      return key->set_i32(r->GetInt32(entry, f));
    case FieldDescriptor::CPPTYPE_INT64:
      return key->set_i64(r->GetInt64(entry, f));
    default:
      return key->set_s(r->GetString(entry, f));
  }
}

class Splitter {
 public:
  Splitter(RiegeliWriter writer, uint64_t chunk_bytes)
      : writer_(std::move(writer)), most_(chunk_bytes) {}

  // Writes `m` as chunks and says in `parts` which. `m` is taken apart.
  Status Split(Message* m, ChunkedMessage* parts);
  Status WriteMetadata() {
    metadata_.mutable_version()->set_splitter_version(kVersion);
    metadata_.mutable_version()->set_join_version(kVersion);
    return writer_.Write(metadata_.SerializeAsString()).status();
  }
  ChunkedMessage* root() { return metadata_.mutable_message(); }

 private:
  Status AddChunk(StringView bytes, ChunkInfo::Type type,
                  ChunkedMessage* parts);
  Status AddMessage(const Message& m, ChunkedMessage* parts);
  Status SplitSingle(Message* m, const FieldDescriptor* f,
                     ChunkedMessage* parts);
  Status SplitElements(Message* m, const FieldDescriptor* f,
                       ChunkedMessage* parts);
  Status SplitElement(Message* element, const FieldDescriptor* f, int index,
                      ChunkedMessage* parts);
  Status WriteRuns(Message* m, const FieldDescriptor* f, ChunkedMessage* parts);

  RiegeliWriter writer_;
  const uint64_t most_;
  ChunkMetadata metadata_;
};

Status Splitter::AddChunk(StringView bytes, ChunkInfo::Type type,
                          ChunkedMessage* parts) {
  HR_ASSIGN_OR_RETURN(const uint64_t place, writer_.Write(bytes));
  ChunkInfo* info = metadata_.add_chunks();
  info->set_type(type);
  info->set_size(bytes.size());
  info->set_offset(place);
  parts->set_chunk_index(metadata_.chunks_size() - 1);
  return OkStatus();
}

Status Splitter::AddMessage(const Message& m, ChunkedMessage* parts) {
  std::string bytes;
  if (m.ByteSizeLong() > kMostProtoBytes || !m.SerializeToString(&bytes)) {
    return ResourceExhausted(std::string(m.GetDescriptor()->full_name()),
                             ": a part of ", m.ByteSizeLong(),
                             " bytes cannot be cut, at most ", kMostProtoBytes,
                             " are possible");
  }
  return AddChunk(bytes, ChunkInfo::MESSAGE, parts);
}

Status Splitter::Split(Message* m, ChunkedMessage* parts) {
  if (m->ByteSizeLong() <= most_) return AddMessage(*m, parts);
  const auto* r = m->GetReflection();
  std::vector<const FieldDescriptor*> fields;
  r->ListFields(*m, &fields);
  // Lists are written behind all else: their elements are parts of `m`, in
  // order, and single fields of it stand on their own.
  std::vector<const FieldDescriptor*> lists;
  std::vector<const FieldDescriptor*> cut;
  for (const FieldDescriptor* f : fields) {
    const bool is_message = f->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    if (f->is_repeated()) {
      if (is_message) lists.push_back(f);
    } else if (is_message || f->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
      HR_RETURN_IF_ERROR(SplitSingle(m, f, parts));
    }
  }
  for (const FieldDescriptor* f : lists) {
    if (m->ByteSizeLong() <= most_) break;
    HR_RETURN_IF_ERROR(SplitElements(m, f, parts));
    cut.push_back(f);
  }
  // Lists that are still too long together, in several parts like `m`.
  if (m->ByteSizeLong() > most_) {
    for (const FieldDescriptor* f : cut) {
      HR_RETURN_IF_ERROR(WriteRuns(m, f, parts));
    }
  }
  return AddMessage(*m, parts);
}

Status Splitter::SplitSingle(Message* m, const FieldDescriptor* f,
                             ChunkedMessage* parts) {
  const auto* r = m->GetReflection();
  const bool is_message = f->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
  std::string scratch;
  const uint64_t size = is_message
                            ? r->GetMessage(*m, f).ByteSizeLong()
                            : r->GetStringReference(*m, f, &scratch).size();
  if (size <= most_ / kFieldsOfChunk) return OkStatus();
  ChunkedField* field = parts->add_chunked_fields();
  field->add_field_tag()->set_field(f->number());
  if (is_message) {
    HR_RETURN_IF_ERROR(
        Split(r->MutableMessage(m, f), field->mutable_message()));
  } else {
    HR_RETURN_IF_ERROR(AddChunk(r->GetStringReference(*m, f, &scratch),
                                ChunkInfo::BYTES, field->mutable_message()));
  }
  r->ClearField(m, f);
  return OkStatus();
}

// Elements, or values of a map, that are too large are written by themselves;
// an empty one keeps their place.
Status Splitter::SplitElements(Message* m, const FieldDescriptor* f,
                               ChunkedMessage* parts) {
  const auto* r = m->GetReflection();
  const int size = r->FieldSize(*m, f);
  for (int i = 0; i < size; ++i) {
    Message* element = r->MutableRepeatedMessage(m, f, i);
    if (element->ByteSizeLong() <= most_) continue;
    HR_RETURN_IF_ERROR(SplitElement(element, f, i, parts));
  }
  return OkStatus();
}

Status Splitter::SplitElement(Message* element, const FieldDescriptor* f,
                              int index, ChunkedMessage* parts) {
  ChunkedField* field = parts->add_chunked_fields();
  field->add_field_tag()->set_field(f->number());
  if (!f->is_map()) {
    field->add_field_tag()->set_index(index);
    HR_RETURN_IF_ERROR(Split(element, field->mutable_message()));
    element->Clear();
    return OkStatus();
  }
  const FieldDescriptor* value = f->message_type()->map_value();
  const auto* r = element->GetReflection();
  SetMapKey(*element, f->message_type()->map_key(),
            field->add_field_tag()->mutable_map_key());
  if (value->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
    parts->mutable_chunked_fields()->RemoveLast();
    return OkStatus();  // AddMessage refuses it, if it must
  }
  HR_RETURN_IF_ERROR(
      Split(r->MutableMessage(element, value), field->mutable_message()));
  r->MutableMessage(element, value)->Clear();
  return OkStatus();
}

// Moves a list to chunks of as many elements as fit; each is a part of `m`.
Status Splitter::WriteRuns(Message* m, const FieldDescriptor* f,
                           ChunkedMessage* parts) {
  const auto* r = m->GetReflection();
  const std::unique_ptr<Message> run(m->New());
  uint64_t bytes = 0;
  const auto write = [&] {
    bytes = 0;
    const Status s =
        AddMessage(*run, parts->add_chunked_fields()->mutable_message());
    run->Clear();
    return s;
  };
  const int size = r->FieldSize(*m, f);
  for (int i = 0; i < size; ++i) {
    Message* element = r->MutableRepeatedMessage(m, f, i);
    const uint64_t more = element->ByteSizeLong();
    if (bytes > 0 && bytes + more > most_) HR_RETURN_IF_ERROR(write());
    r->AddMessage(run.get(), f)
        ->GetReflection()
        ->Swap(element, r->MutableRepeatedMessage(run.get(), f,
                                                  r->FieldSize(*run, f) - 1));
    bytes += more;
  }
  r->ClearField(m, f);
  return r->FieldSize(*run, f) > 0 ? write() : OkStatus();
}

}  // namespace

Status WriteChunkedProto(Message* message, WritableFile* file,
                         uint64_t chunk_bytes) {
  HR_ASSIGN_OR_RETURN(RiegeliWriter writer, RiegeliWriter::Create(file));
  Splitter splitter(std::move(writer), chunk_bytes);
  HR_RETURN_IF_ERROR(splitter.Split(message, splitter.root()));
  return splitter.WriteMetadata();
}

Status WriteChunkedProto(Message* message, FileSystem* fs,
                         const std::string& path, uint64_t chunk_bytes) {
  return ReplaceFile(fs, path, [&](WritableFile* file) {
    return WriteChunkedProto(message, file, chunk_bytes);
  });
}

}  // namespace headrace
