#include "distributed/wire/tensor_codec.h"

#include <gtest/gtest.h>

#include "tensor/tensor_proto.h"
#include "tensorflow/core/framework/tensor.pb.h"

namespace headrace::distributed {
namespace {

Bytes InPieces(const std::string& text, size_t size) {
  Bytes bytes;
  for (size_t at = 0; at < text.size(); at += size) {
    bytes.Append(text.substr(at, size));
  }
  return bytes;
}

Tensor Counting(int64_t n) {
  Tensor t = *Tensor::Allocate(DType::kFloat, Shape{n});
  for (int64_t i = 0; i < n; ++i) t.data<float>()[i] = i * 0.5f;
  return t;
}

bool Equal(const Tensor& a, const Tensor& b) {
  tensorflow::TensorProto x, y;
  return TensorToProto(a, &x).ok() && TensorToProto(b, &y).ok() &&
         x.SerializeAsString() == y.SerializeAsString();
}

std::vector<Tensor> Samples() {
  Tensor bools = *Tensor::Allocate(DType::kBool, Shape{3});
  for (int i = 0; i < 3; ++i) bools.data<bool>()[i] = i == 1;
  Tensor strings = *Tensor::Allocate(DType::kString, Shape{2, 1});
  strings.data<std::string>()[1] = std::string("a\0b", 3);
  return {Tensor::Scalar<int32_t>(-7),
          Counting(3),
          Counting(5000),
          *Tensor::Allocate(DType::kFloat, Shape{0, 4}),
          bools,
          strings,
          Tensor::Scalar<double>(2.5)};
}

TEST(TensorCodec, BackAsTheyWere) {
  for (const Tensor& t : Samples()) {
    ReceivedTensor sent{t, false, 123456789, true};
    const auto bytes = EncodeReceived(sent);
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    for (const size_t piece : {1, 2, 7, 4096, 1 << 20}) {
      const auto got = DecodeReceived(InPieces(bytes->Flat(), piece));
      ASSERT_TRUE(got.ok()) << got.status() << t.Describe();
      EXPECT_TRUE(Equal(got->tensor, t)) << t.Describe();
      EXPECT_EQ(got->send_start_micros, 123456789);
      EXPECT_TRUE(got->require_ack);
      EXPECT_FALSE(got->is_dead);
    }
  }
}

TEST(TensorCodec, WithoutACopy) {
  const Tensor t = Counting(5000);
  const Bytes bytes = *EncodeReceived({t});
  ASSERT_EQ(bytes.pieces().size(), 2);
  EXPECT_EQ(bytes.pieces()[1].data, static_cast<const char*>(t.raw()));
  const auto got = DecodeReceived(bytes);
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->tensor.raw(), t.raw());
  EXPECT_FALSE(got->tensor.exclusive());
  // Of bytes at an odd place it is a copy.
  const auto odd = DecodeReceived(InPieces("\x40\x01" + bytes.Flat(), 1 << 20));
  ASSERT_TRUE(odd.ok()) << odd.status();
  EXPECT_TRUE(Equal(odd->tensor, t));
}

TEST(TensorCodec, MemoryOutlivesWhoSentIt) {
  Bytes bytes;
  {
    const Tensor t = Counting(5000);
    bytes = *EncodeReceived({t});
  }
  EXPECT_EQ(DecodeReceived(bytes)->tensor.data<float>()[4999], 2499.5f);
  float values[400] = {1, 2, 3};
  bytes = *EncodeReceived({Tensor::Borrow(DType::kFloat, Shape{400}, values)});
  values[0] = 9;
  EXPECT_EQ(DecodeReceived(bytes)->tensor.data<float>()[0], 1);
}

TEST(TensorCodec, DeadTensors) {
  ReceivedTensor dead;
  dead.is_dead = true;
  const auto got = DecodeReceived(*EncodeReceived(dead));
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_TRUE(got->is_dead);
  EXPECT_FALSE(got->tensor.has_buffer());
  TensorParts parts;
  const auto encoded = EncodeInParts(dead, 10);
  for (const Bytes& part : *encoded) {
    ASSERT_TRUE(parts.Add(part).ok());
  }
  EXPECT_TRUE(parts.Finish()->is_dead);
}

// As TensorFlow writes it: fields of ours, lists in place of content.
TEST(TensorCodec, MessagesOfOthers) {
  tensorflow::TensorProto proto;
  proto.set_dtype(tensorflow::DT_FLOAT);
  proto.mutable_tensor_shape()->add_dim()->set_size(3);
  proto.add_float_val(1.5);
  const std::string inner = proto.SerializeAsString();
  std::string message = "\x22\x02??";  // transport_options
  message += '\x0a';
  message += static_cast<char>(inner.size());
  message += inner;
  message += "\x98\x06\x01";  // a field of a later version
  const auto got = DecodeReceived(Bytes(message));
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->tensor.data<float>()[2], 1.5f);
}

TEST(TensorCodec, CutAtEveryByte) {
  for (const Tensor& t : Samples()) {
    const std::string all = EncodeReceived({t, false, 5, true})->Flat();
    for (size_t n = 0; n < all.size(); n += n < 200 ? 1 : 97) {
      EXPECT_FALSE(DecodeReceived(Bytes(all.substr(0, n))).ok())
          << t.Describe() << " cut at " << n;
    }
  }
}

TEST(TensorCodec, LiesAreSeenBeforeMemoryIsTaken) {
  const struct {
    const char* what;
    tensorflow::DataType dtype;
    std::vector<int64_t> dims;
    size_t content;
  } rows[] = {
      {"a petabyte", tensorflow::DT_FLOAT, {int64_t{1} << 48}, 8},
      {"beyond 64 bits", tensorflow::DT_FLOAT, {1 << 30, 1 << 30, 1 << 30}, 8},
      {"a negative size", tensorflow::DT_FLOAT, {-2}, 8},
      {"an unknown size", tensorflow::DT_FLOAT, {-1}, 8},
      {"a byte too few", tensorflow::DT_FLOAT, {2}, 7},
      {"a byte too many", tensorflow::DT_FLOAT, {2}, 9},
      {"a petabyte in no bytes", tensorflow::DT_FLOAT, {int64_t{1} << 48}, 0},
      {"strings", tensorflow::DT_STRING, {int64_t{1} << 40}, 8},
      {"no dtype", tensorflow::DT_INVALID, {2}, 8},
      {"a reference", tensorflow::DT_FLOAT_REF, {2}, 8},
      {"an unknown dtype", static_cast<tensorflow::DataType>(99), {2}, 8},
  };
  for (const auto& row : rows) {
    tensorflow::TensorProto proto;
    proto.set_dtype(row.dtype);
    for (int64_t d : row.dims) {
      proto.mutable_tensor_shape()->add_dim()->set_size(d);
    }
    const std::string head = proto.SerializeAsString();
    proto.set_tensor_content(std::string(row.content, 'c'));
    const std::string inner = proto.SerializeAsString();
    std::string message = "\x0a";
    message += static_cast<char>(inner.size());
    EXPECT_FALSE(DecodeReceived(Bytes(message + inner)).ok()) << row.what;
    TensorParts parts(1 << 20);
    message = std::string("\x0a") + static_cast<char>(head.size()) + head;
    Status s = parts.Add(Bytes(message));
    if (s.ok()) s = parts.Add(Bytes(std::string(row.content, 'c')));
    if (s.ok()) s = parts.Finish().status();
    EXPECT_FALSE(s.ok()) << row.what;
  }
}

TEST(TensorCodec, InParts) {
  for (const Tensor& t : Samples()) {
    for (const size_t size : {1, 1000, 1 << 20}) {
      if (size == 1 && t.num_elements() > 100) continue;
      const auto encoded = EncodeInParts({t, false, 7, false}, size);
      ASSERT_TRUE(encoded.ok()) << encoded.status();
      TensorParts parts;
      EXPECT_FALSE(TensorParts().Finish().ok());
      for (size_t i = 0; i < encoded->size(); ++i) {
        if (i > 0) {
          EXPECT_LE((*encoded)[i].size(), size);
        }
        ASSERT_TRUE(parts.Add((*encoded)[i]).ok());
      }
      const auto got = parts.Finish();
      ASSERT_TRUE(got.ok()) << got.status();
      EXPECT_TRUE(Equal(got->tensor, t)) << t.Describe();
      EXPECT_EQ(got->send_start_micros, 7);
    }
  }
  const auto encoded = *EncodeInParts({Counting(1000)}, 1000);
  TensorParts parts;
  ASSERT_TRUE(parts.Add(encoded[0]).ok());
  ASSERT_TRUE(parts.Add(encoded[1]).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(parts.Finish().status()));
  for (size_t i = 2; i < encoded.size(); ++i) {
    ASSERT_TRUE(parts.Add(encoded[i]).ok());
  }
  EXPECT_TRUE(absl::IsInvalidArgument(parts.Add(encoded[1])));
}

}  // namespace
}  // namespace headrace::distributed
