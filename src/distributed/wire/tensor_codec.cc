#include "distributed/wire/tensor_codec.h"

#include <climits>
#include <cstring>

#include "base/numbers/bools.h"
#include "distributed/wire/fields.h"
#include "tensor/tensor_proto.h"
#include "tensorflow/core/framework/tensor.pb.h"

namespace headrace::distributed {
namespace {

using tensorflow::TensorProto;

// Of RecvTensorResponse.
constexpr uint32_t kTensor = 1, kIsDead = 2, kSendStart = 3, kRequireAck = 5;
// Of TensorProto.
constexpr uint32_t kContent = 4;
// Shorter content lies in the head.
constexpr size_t kAlone = 1024;

Status NoMessage(StringView why) {
  return InvalidArgument("not a RecvTensorResponse: ", why);
}

void PutField(uint32_t number, uint64_t value, std::string* out) {
  if (value == 0) return;
  PutVarint(number << 3 | kVarint, out);
  PutVarint(value, out);
}

// What stands before the tensor's bytes, which are `content` of `size`.
std::string Head(const ReceivedTensor& received, const std::string& proto,
                 size_t size) {
  std::string head;
  PutField(kIsDead, received.is_dead, &head);
  PutField(kSendStart, received.send_start_micros, &head);
  PutField(kRequireAck, received.require_ack, &head);
  const size_t content = size == 0 ? 0 : 1 + VarintSize(size) + size;
  PutVarint(kTensor << 3 | kLength, &head);
  PutVarint(proto.size() + content, &head);
  head += proto;
  if (size != 0) {
    PutVarint(kContent << 3 | kLength, &head);
    PutVarint(size, &head);
  }
  return head;
}

// The tensor's proto, of a plain one without its content, which *content is
// then.
StatusOr<std::string> ProtoOf(const Tensor& tensor, Bytes* content) {
  TensorProto proto;
  const bool plain = IsPlain(tensor.dtype()) && tensor.has_buffer();
  // A tensor without a buffer is described.
  const Tensor described =
      plain ? Tensor(tensor.dtype(), tensor.shape()) : tensor;
  HR_RETURN_IF_ERROR(TensorToProto(described, &proto));
  if (plain && tensor.bytes() != 0) {
    const auto owner = std::make_shared<Tensor>(tensor);
    if (!tensor.counted()) {
      HR_ASSIGN_OR_RETURN(*owner, tensor.Clone());
    }
    content->Append(
        {owner, static_cast<const char*>(owner->raw()), owner->bytes()});
  }
  std::string text;
  if (!proto.SerializeToString(&text)) {
    return ResourceExhausted("a tensor of ", tensor.Describe(),
                             " is longer than a message can be");
  }
  return text;
}

// As ForFields.
template <typename F>
Status EachField(const Bytes& bytes, F f) {
  const char* const why = ForFields(bytes, std::move(f));
  return why == nullptr ? OkStatus() : NoMessage(why);
}

// TensorProto without its content, and that.
struct ReadTensor {
  TensorProto proto;
  Bytes content;
};

StatusOr<ReadTensor> Split(const Bytes& bytes) {
  ReadTensor read;
  std::string rest;
  HR_RETURN_IF_ERROR(
      EachField(bytes, [&](uint32_t tag, uint64_t value, Bytes text) {
        if (tag == (kContent << 3 | kLength)) {
          read.content = std::move(text);
          return;
        }
        PutVarint(tag, &rest);
        if ((tag & 7) == kVarint || (tag & 7) == kLength) {
          PutVarint(value, &rest);
        }
        for (const Bytes::Piece& piece : text.pieces()) {
          rest.append(piece.data, piece.size);
        }
      }));
  if (rest.size() > INT_MAX || !read.proto.ParseFromString(rest)) {
    return NoMessage("its tensor is none");
  }
  return read;
}

// The dtype and whole shape of a plain tensor; nothing for others.
StatusOr<std::optional<Tensor>> PlainOf(const TensorProto& proto) {
  const int dtype = proto.dtype();
  if (!DTypeIsValid(dtype) || dtype >= kRefOffset) {
    return NoMessage(absl::StrCat("there is no dtype ", dtype));
  }
  if (!IsPlain(static_cast<DType>(dtype))) return std::nullopt;
  HR_ASSIGN_OR_RETURN(Shape shape, ShapeFromProto(proto.tensor_shape()));
  int64_t bytes;
  if (!shape.fully_known() ||
      !MultiplyChecked(
          shape.num_elements(),
          static_cast<int64_t>(DTypeSize(static_cast<DType>(dtype))), &bytes)) {
    return NoMessage(absl::StrCat("a tensor of shape ", shape.ToString()));
  }
  return Tensor(static_cast<DType>(dtype), std::move(shape));
}

// `described` with elements of these bytes, as many as it has.
StatusOr<Tensor> WithContent(const Tensor& described, const Bytes& content) {
  const Bytes::Piece& first = content.pieces().front();
  // Bytes other than 0 and 1 are no bools: those are looked through.
  const bool is_bool = described.dtype() == DType::kBool;
  const bool placed = reinterpret_cast<uintptr_t>(first.data) %
                          std::max<size_t>(8, DTypeSize(described.dtype())) ==
                      0;
  if (content.pieces().size() == 1 && placed && first.owner && !is_bool) {
    auto* owner = new std::shared_ptr<const void>(first.owner);
    return Tensor::Wrap(
        described.dtype(), described.shape(), const_cast<char*>(first.data),
        first.size, owner,
        [](void* o) { delete static_cast<std::shared_ptr<const void>*>(o); });
  }
  HR_ASSIGN_OR_RETURN(Tensor tensor,
                      Tensor::Allocate(described.dtype(), described.shape()));
  CopyTo(content, static_cast<char*>(tensor.raw()));
  if (is_bool) MakeBools(tensor.raw(), content.size());
  return tensor;
}

struct ReadMessage {
  ReceivedTensor received;
  Bytes tensor;
};

StatusOr<ReadMessage> ReadResponse(const Bytes& bytes) {
  ReadMessage read;
  HR_RETURN_IF_ERROR(
      EachField(bytes, [&](uint32_t tag, uint64_t value, Bytes text) {
        ReceivedTensor& received = read.received;
        if (tag == (kIsDead << 3 | kVarint)) received.is_dead = value != 0;
        if (tag == (kRequireAck << 3 | kVarint)) {
          received.require_ack = value != 0;
        }
        if (tag == (kSendStart << 3 | kVarint)) {
          received.send_start_micros = static_cast<int64_t>(value);
        }
        // What comes twice is put together.
        if (tag == (kTensor << 3 | kLength))
          read.tensor.Append(std::move(text));
      }));
  return read;
}

}  // namespace

StatusOr<Bytes> EncodeReceived(const ReceivedTensor& received) {
  Bytes content;
  Tensor tensor = received.tensor;
  if (received.is_dead) {
    // TensorFlow ends the process of a reader that is told no dtype.
    HR_ASSIGN_OR_RETURN(tensor, Tensor::Allocate(DType::kFloat, Shape({0})));
  }
  HR_ASSIGN_OR_RETURN(const std::string proto, ProtoOf(tensor, &content));
  std::string head = Head(received, proto, content.size());
  if (content.size() > kAlone) {
    Bytes message(std::move(head));
    message.Append(std::move(content));
    return message;
  }
  for (const Bytes::Piece& piece : content.pieces()) {
    head.append(piece.data, piece.size);
  }
  return Bytes(std::move(head));
}

StatusOr<ReceivedTensor> DecodeReceived(const Bytes& bytes) {
  HR_ASSIGN_OR_RETURN(ReadMessage read, ReadResponse(bytes));
  if (read.received.is_dead) return std::move(read.received);
  HR_ASSIGN_OR_RETURN(ReadTensor parts, Split(read.tensor));
  HR_ASSIGN_OR_RETURN(std::optional<Tensor> plain, PlainOf(parts.proto));
  Tensor& tensor = read.received.tensor;
  if (!plain || parts.content.size() == 0) {
    *parts.proto.mutable_tensor_content() = parts.content.Flat();
    HR_ASSIGN_OR_RETURN(tensor, TensorFromProto(parts.proto));
  } else if (parts.content.size() != plain->bytes()) {
    return NoMessage(
        absl::StrCat(parts.content.size(), " bytes for ", plain->Describe()));
  } else {
    HR_ASSIGN_OR_RETURN(tensor, WithContent(*plain, parts.content));
  }
  return std::move(read.received);
}

StatusOr<std::vector<Bytes>> EncodeInParts(const ReceivedTensor& received,
                                           size_t size) {
  Bytes content;
  std::string proto;
  if (!received.is_dead) {
    HR_ASSIGN_OR_RETURN(proto, ProtoOf(received.tensor, &content));
  }
  std::vector<Bytes> parts;
  parts.emplace_back(Head(received, proto, 0));
  PieceReader reader(content);
  while (reader.left() > 0) {
    reader.Take(std::min(size, reader.left()), &parts.emplace_back());
  }
  return parts;
}

Status TensorParts::AddFirst(const Bytes& part) {
  HR_ASSIGN_OR_RETURN(ReadMessage read, ReadResponse(part));
  received_ = std::move(read.received);
  if (received_->is_dead) return OkStatus();
  HR_ASSIGN_OR_RETURN(ReadTensor parts, Split(read.tensor));
  HR_ASSIGN_OR_RETURN(std::optional<Tensor> plain, PlainOf(parts.proto));
  if (!plain) {
    *parts.proto.mutable_tensor_content() = parts.content.Flat();
    HR_ASSIGN_OR_RETURN(received_->tensor, TensorFromProto(parts.proto));
    return OkStatus();
  }
  if (plain->bytes() > longest_) {
    return ResourceExhausted("a tensor of ", plain->Describe(),
                             " is longer than ", longest_, " bytes");
  }
  wanted_ = plain->bytes();
  HR_ASSIGN_OR_RETURN(received_->tensor,
                      Tensor::Allocate(plain->dtype(), plain->shape()));
  return OkStatus();
}

Status TensorParts::Add(const Bytes& part) {
  if (!received_) return AddFirst(part);
  if (part.size() > wanted_ - there_) {
    return NoMessage(
        absl::StrCat("more bytes than ", received_->tensor.Describe(), " has"));
  }
  CopyTo(part, static_cast<char*>(received_->tensor.raw()) + there_);
  there_ += part.size();
  return OkStatus();
}

StatusOr<ReceivedTensor> TensorParts::Finish() {
  if (!received_ || there_ != wanted_) {
    return NoMessage(absl::StrCat(there_, " bytes of ", wanted_, " came"));
  }
  if (received_->tensor.dtype() == DType::kBool) {
    MakeBools(received_->tensor.raw(), wanted_);
  }
  ReceivedTensor received = *std::move(received_);
  received_.reset();
  there_ = wanted_ = 0;
  return received;
}

}  // namespace headrace::distributed
