#include "distributed/wire/buf_codec.h"

#include "gtest/gtest.h"
#include "tensorflow/core/protobuf/transport_options.pb.h"
#include "tensorflow/core/protobuf/worker.pb.h"

namespace headrace::distributed {
namespace {

std::string Message(const std::vector<std::string>& chunks) {
  tensorflow::RecvBufRespExtra extra;
  for (const std::string& c : chunks) extra.add_tensor_content(c);
  tensorflow::RecvBufResponse response;
  response.mutable_transport_options()->PackFrom(extra);
  response.set_send_start_micros(17);
  return response.SerializeAsString();
}

TEST(BufCodecTest, WritesWhatProtobufReads) {
  tensorflow::RecvBufResponse response;
  tensorflow::RecvBufRespExtra extra;
  const std::string content(300, 'x');
  ASSERT_TRUE(response.ParseFromString(EncodeBuf(Bytes(content)).Flat()));
  ASSERT_TRUE(response.transport_options().UnpackTo(&extra));
  ASSERT_EQ(extra.tensor_content_size(), 1);
  EXPECT_EQ(extra.tensor_content(0), content);
}

TEST(BufCodecTest, ReadsChunksInPieces) {
  const std::string text = Message({"abc", "", "defgh"});
  for (const size_t size : {size_t{1}, size_t{7}, text.size()}) {
    Bytes bytes;
    for (size_t at = 0; at < text.size(); at += size) {
      bytes.Append(text.substr(at, size));
    }
    const auto content = DecodeBuf(bytes, 8);
    ASSERT_TRUE(content.ok()) << content.status();
    EXPECT_EQ(content->Flat(), "abcdefgh");
  }
}

TEST(BufCodecTest, RefusesOtherSizesAndCutMessages) {
  const std::string text = Message({"abcdefgh"});
  EXPECT_TRUE(absl::IsInvalidArgument(DecodeBuf(Bytes(text), 7).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(DecodeBuf(Bytes(text), 9).status()));
  for (size_t n = 0; n < text.size(); ++n) {
    const auto cut = DecodeBuf(Bytes(text.substr(0, n)), 8);
    // All but the time of sending, which stands behind the bytes.
    if (cut.ok()) {
      EXPECT_EQ(cut->Flat(), "abcdefgh");
    } else {
      EXPECT_TRUE(absl::IsInvalidArgument(cut.status()));
    }
  }
  tensorflow::RecvBufResponse dead;
  dead.set_is_dead(true);
  EXPECT_TRUE(absl::IsInvalidArgument(
      DecodeBuf(Bytes(dead.SerializeAsString()), 0).status()));
  // A length of nearly all that 64 bits say.
  EXPECT_TRUE(absl::IsInvalidArgument(
      DecodeBuf(Bytes(std::string("\x22\xff\xff\xff\xff\xff\xff\xff\xff\x7f")),
                8)
          .status()));
}

}  // namespace
}  // namespace headrace::distributed
