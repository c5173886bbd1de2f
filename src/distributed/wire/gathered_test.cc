#include "distributed/wire/gathered.h"

#include <gtest/gtest.h>

namespace headrace::distributed {
namespace {

Bytes OnesCut(const std::string& text, size_t size) {
  Bytes bytes;
  for (size_t at = 0; at < text.size(); at += size) {
    bytes.Append(text.substr(at, size));
  }
  return bytes;
}

// Small and large ones, one that is dead, one that comes by itself.
std::string Part() {
  GatheredWriter writer;
  const auto add = [&](GatheredTensor t) { ASSERT_TRUE(writer.Add(t).ok()); };
  add({3, false, {Tensor::Scalar<float>(1.5f)}});
  Tensor large = *Tensor::Allocate(DType::kInt32, Shape{3000});
  for (int i = 0; i < 3000; ++i) large.data<int32_t>()[i] = i;
  add({0, false, {large}});
  ReceivedTensor dead;
  dead.is_dead = true;
  add({7, false, dead});
  add({300, true});
  const size_t size = writer.size();
  std::string text = writer.Take().Flat();
  EXPECT_EQ(text.size(), size);
  EXPECT_EQ(writer.size(), 0);
  return text;
}

TEST(Gathered, BackAsTheyWere) {
  const std::string part = Part();
  for (const size_t piece : {1, 5, 4096, 1 << 20}) {
    const auto all = ReadGathered(OnesCut(part, piece));
    ASSERT_TRUE(all.ok()) << all.status();
    ASSERT_EQ(all->size(), 4);
    EXPECT_EQ((*all)[0].number, 3);
    EXPECT_EQ((*all)[0].received.tensor.scalar<float>(), 1.5f);
    EXPECT_EQ((*all)[1].received.tensor.data<int32_t>()[2999], 2999);
    EXPECT_TRUE((*all)[2].received.is_dead);
    EXPECT_EQ((*all)[3].number, 300);
    EXPECT_TRUE((*all)[3].in_parts);
  }
  EXPECT_TRUE(ReadGathered(Bytes())->empty());
}

TEST(Gathered, WhatIsCutIsRefusedOrShorter) {
  const std::string part = Part();
  int whole = 0;
  for (size_t n = 0; n < part.size(); ++n) {
    const auto all = ReadGathered(Bytes(part.substr(0, n)));
    if (all.ok()) ++whole;
  }
  EXPECT_EQ(whole, 4);  // behind each tensor, and nothing
}

TEST(Gathered, WhatIsNone) {
  // A number beyond 32 bits; a tensor that is none; one without a tensor.
  for (const std::string text :
       {std::string("\x0a\x06\x08\xff\xff\xff\xff\x7f"),
        std::string("\x0a\x04\x1a\x02\xff\xff"), std::string("\x0a")}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ReadGathered(Bytes(text)).status()));
  }
}

}  // namespace
}  // namespace headrace::distributed
