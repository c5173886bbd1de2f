#include <algorithm>
#include <tuple>
#include <vector>

#include "base/utf8.h"
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

// As deep as protobuf's parser goes.
constexpr int kMostDepth = 100;
// Keys of maps that may be compared: those of real models are few.
constexpr int64_t kMostComparisons = int64_t{1} << 26;

// Shallow places come first, so that what they hold is there for deeper ones;
// elements of a list in their order.
using SortKey = std::vector<std::tuple<int, uint64_t>>;
SortKey KeyOf(const ChunkedField& f) {
  SortKey key;
  for (const FieldIndex& tag : f.field_tag()) {
    key.emplace_back(tag.kind_case(), tag.has_index()   ? tag.index()
                                      : tag.has_field() ? tag.field()
                                                        : 0);
  }
  return key;
}

std::vector<const ChunkedField*> InOrder(const ChunkedMessage& message) {
  std::vector<std::pair<SortKey, const ChunkedField*>> keyed;
  for (const ChunkedField& f : message.chunked_fields()) {
    keyed.emplace_back(KeyOf(f), &f);
  }
  std::stable_sort(keyed.begin(), keyed.end(), [](auto& a, auto& b) {
    return std::tuple(a.first.size(), a.first) <
           std::tuple(b.first.size(), b.first);
  });
  std::vector<const ChunkedField*> fields;
  for (const auto& [key, f] : keyed) fields.push_back(f);
  return fields;
}

bool HasKey(const Message& entry, const FieldDescriptor* f, const MapKey& key) {
  const auto* r = entry.GetReflection();
  switch (f->cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      return r->GetString(entry, f) == key.s();
    case FieldDescriptor::CPPTYPE_BOOL:
      return r->GetBool(entry, f) == key.boolean();
    case FieldDescriptor::CPPTYPE_UINT32:
      return r->GetUInt32(entry, f) == key.ui32();
    case FieldDescriptor::CPPTYPE_UINT64:
      return r->GetUInt64(entry, f) == key.ui64();
    case FieldDescriptor::CPPTYPE_INT32:
      return r->GetInt32(entry, f) == key.i32();
    case FieldDescriptor::CPPTYPE_INT64:
      return r->GetInt64(entry, f) == key.i64();
    default:
      return false;
  }
}

// False where the key is not of the field's type.
bool SetKey(Message* entry, const FieldDescriptor* f, const MapKey& key) {
  const auto* r = entry->GetReflection();
  const auto is = [&](MapKey::TypeCase type) {
    return key.type_case() == type;
  };
  switch (f->cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      r->SetString(entry, f, key.s());
      return is(MapKey::kS);
    case FieldDescriptor::CPPTYPE_BOOL:
      r->SetBool(entry, f, key.boolean());
      return is(MapKey::kBoolean);
    case FieldDescriptor::CPPTYPE_UINT32:
      r->SetUInt32(entry, f, key.ui32());
      return is(MapKey::kUi32);
    case FieldDescriptor::CPPTYPE_UINT64:
      r->SetUInt64(entry, f, key.ui64());
      return is(MapKey::kUi64);
    case FieldDescriptor::CPPTYPE_INT32:
      r->SetInt32(entry, f, key.i32());
      return is(MapKey::kI32);
    case FieldDescriptor::CPPTYPE_INT64:
      r->SetInt64(entry, f, key.i64());
      return is(MapKey::kI64);
    default:
      return false;
  }
}

bool IsText(StringView bytes) {
  for (size_t at = 0; at < bytes.size();) {
    if (Utf8Next(bytes, &at) < 0) return false;
  }
  return true;
}

// Where a path of tags leads: a message, or a field of it that is none.
struct Place {
  Message* message;
  const FieldDescriptor* text = nullptr;
  int depth;
};

class Merger {
 public:
  Merger(RiegeliReader reader, const std::string& path,
         const ChunkMetadata& metadata)
      : reader_(std::move(reader)),
        path_(path),
        metadata_(metadata),
        used_(metadata.chunks_size()) {}

  Status Merge(const ChunkedMessage& parts, Message* to, int depth);

 private:
  template <typename... Args>
  Status Damaged(const Args&... args) const {
    return DataLoss(path_, ": ", args...);
  }
  StatusOr<std::string> Take(uint64_t index, ChunkInfo::Type type);
  Status MergeField(const ChunkedField& field, Message* to, int depth);
  StatusOr<Place> Find(const ChunkedField& field, Message* from, int depth);
  StatusOr<Message*> Element(Message* m, const FieldDescriptor* f,
                             const FieldIndex& tag);
  StatusOr<Message*> MapValue(Message* m, const FieldDescriptor* f,
                              const FieldIndex& tag);

  RiegeliReader reader_;
  const std::string path_;
  const ChunkMetadata& metadata_;
  std::vector<bool> used_;  // by chunk
  int64_t comparisons_ = 0;
};

// A chunk belongs at one place, so that a small file makes no large message.
StatusOr<std::string> Merger::Take(uint64_t index, ChunkInfo::Type type) {
  if (index >= used_.size()) {
    return Damaged("chunk ", index, " is not one of its ", used_.size());
  }
  if (used_[index]) return Damaged("chunk ", index, " belongs at two places");
  used_[index] = true;
  const ChunkInfo& info = metadata_.chunks(static_cast<int>(index));
  if (info.type() != type) {
    return Damaged("chunk ", index, " is of type ", info.type(), ", expected ",
                   static_cast<int>(type));
  }
  auto bytes = reader_.Read(info.offset());
  if (absl::IsNotFound(bytes.status())) {
    return Damaged("chunk ", index, " has no record at ", info.offset());
  }
  HR_RETURN_IF_ERROR(bytes.status());
  if (bytes->size() != info.size()) {
    return Damaged("chunk ", index, " has ", bytes->size(), " bytes, not ",
                   info.size());
  }
  return bytes;
}

Status Merger::Merge(const ChunkedMessage& parts, Message* to, int depth) {
  if (depth > kMostDepth) {
    return Damaged("messages lie more than ", kMostDepth, " deep");
  }
  if (parts.has_chunk_index()) {
    HR_ASSIGN_OR_RETURN(const std::string bytes,
                        Take(parts.chunk_index(), ChunkInfo::MESSAGE));
    // What is there already stays: lists go on, maps get more.
    google::protobuf::io::CodedInputStream in(
        reinterpret_cast<const uint8_t*>(bytes.data()),
        static_cast<int>(std::min<uint64_t>(bytes.size(), kMostProtoBytes)));
    if (bytes.size() > kMostProtoBytes || !to->MergeFromCodedStream(&in) ||
        !in.ConsumedEntireMessage()) {
      return Damaged("chunk ", parts.chunk_index(), " is no ",
                     std::string(to->GetDescriptor()->full_name()));
    }
  }
  for (const ChunkedField* f : InOrder(parts)) {
    HR_RETURN_IF_ERROR(MergeField(*f, to, depth + 1));
  }
  return OkStatus();
}

Status Merger::MergeField(const ChunkedField& field, Message* to, int depth) {
  HR_ASSIGN_OR_RETURN(const Place place, Find(field, to, depth));
  if (place.text == nullptr) {
    return Merge(field.message(), place.message, place.depth);
  }
  const std::string name(place.text->full_name());
  if (place.text->cpp_type() != FieldDescriptor::CPPTYPE_STRING ||
      place.text->is_repeated()) {
    return Unimplemented(path_, ": ", name,
                         " is in a chunk of its own, which is read of "
                         "messages and single strings only");
  }
  if (!field.message().has_chunk_index() ||
      field.message().chunked_fields_size() > 0) {
    return Damaged(name, " is no message that could have fields");
  }
  HR_ASSIGN_OR_RETURN(std::string bytes,
                      Take(field.message().chunk_index(), ChunkInfo::BYTES));
  if (place.text->type() == FieldDescriptor::TYPE_STRING && !IsText(bytes)) {
    return Damaged(name, " is no valid UTF-8");
  }
  const auto* r = place.message->GetReflection();
  std::string before = r->GetString(*place.message, place.text);
  r->SetString(place.message, place.text,
               before.empty() ? std::move(bytes) : before + bytes);
  return OkStatus();
}

StatusOr<Place> Merger::Find(const ChunkedField& field, Message* from,
                             int depth) {
  Place place{from, nullptr, depth};
  for (int i = 0; i < field.field_tag_size(); ++i) {
    const std::string type(place.message->GetDescriptor()->full_name());
    if (place.text != nullptr || !field.field_tag(i).has_field() ||
        ++place.depth > kMostDepth) {
      return Damaged("tag ", i, " of a path leads nowhere in ", type);
    }
    const auto* f = place.message->GetDescriptor()->FindFieldByNumber(
        static_cast<int>(field.field_tag(i).field()));
    if (f == nullptr) {
      return Damaged(type, " has no field ", field.field_tag(i).field());
    }
    if (f->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
      place.text = f;
      // A list's element has a tag more, for which there is one error.
      if (f->is_repeated()) break;
      continue;
    }
    if (!f->is_repeated()) {
      place.message =
          place.message->GetReflection()->MutableMessage(place.message, f);
      continue;
    }
    if (++i == field.field_tag_size()) {
      return Damaged("a path ends at the list ", std::string(f->full_name()));
    }
    HR_ASSIGN_OR_RETURN(place.message,
                        f->is_map()
                            ? MapValue(place.message, f, field.field_tag(i))
                            : Element(place.message, f, field.field_tag(i)));
  }
  return place;
}

// Elements that are not there are made, one behind the other.
StatusOr<Message*> Merger::Element(Message* m, const FieldDescriptor* f,
                                   const FieldIndex& tag) {
  const auto* r = m->GetReflection();
  const auto size = static_cast<uint64_t>(r->FieldSize(*m, f));
  if (!tag.has_index() || tag.index() > size) {
    return Damaged("expected one of the ", size, " elements of ",
                   std::string(f->full_name()), " or the next, got ",
                   tag.ShortDebugString());
  }
  if (tag.index() == size) return r->AddMessage(m, f);
  return r->MutableRepeatedMessage(m, f, static_cast<int>(tag.index()));
}

StatusOr<Message*> Merger::MapValue(Message* m, const FieldDescriptor* f,
                                    const FieldIndex& tag) {
  const auto* r = m->GetReflection();
  const auto* entry_type = f->message_type();
  const FieldDescriptor* value = entry_type->map_value();
  const std::string name(f->full_name());
  if (!tag.has_map_key() ||
      value->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
    return Damaged("a path does not lead to a message in the map ", name);
  }
  Message* found = nullptr;
  const int size = r->FieldSize(*m, f);
  comparisons_ += size;
  if (comparisons_ > kMostComparisons) {
    return Damaged("too many places lie in maps as large as ", name);
  }
  for (int i = 0; i < size && found == nullptr; ++i) {
    Message* entry = r->MutableRepeatedMessage(m, f, i);
    if (HasKey(*entry, entry_type->map_key(), tag.map_key())) found = entry;
  }
  if (found == nullptr) found = r->AddMessage(m, f);
  if (!SetKey(found, entry_type->map_key(), tag.map_key())) {
    return Damaged("a key of ", name, " is of another type");
  }
  return found->GetReflection()->MutableMessage(found, value);
}

}  // namespace

Status ReadChunkedProto(const RandomAccessFile& file, Message* message) {
  HR_ASSIGN_OR_RETURN(RiegeliReader reader, RiegeliReader::Open(&file));
  auto last = reader.ReadLast();
  ChunkMetadata metadata;
  if (absl::IsNotFound(last.status()) ||
      (last.ok() &&
       (last->size() > kMostProtoBytes || !metadata.ParseFromString(*last) ||
        metadata.chunks().empty() || !metadata.has_message()))) {
    return DataLoss(file.path(), ": its last record is no ChunkMetadata");
  }
  HR_RETURN_IF_ERROR(last.status());
  Merger merger(std::move(reader), file.path(), metadata);
  return merger.Merge(metadata.message(), message, 0);
}

Status ReadChunkedProto(FileSystem* fs, const std::string& path,
                        Message* message) {
  HR_ASSIGN_OR_RETURN(const auto file, fs->OpenToRead(path));
  return ReadChunkedProto(*file, message);
}

}  // namespace headrace
