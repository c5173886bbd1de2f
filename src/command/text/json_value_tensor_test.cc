#include "command/text/json_value_tensor.h"

#include "command/text/array_text.h"
#include "command/text/json_tensor.h"
#include "gtest/gtest.h"

namespace headrace::command {
namespace {

std::string Read(StringView json, DType dtype) {
  const auto value = ParseJson(json);
  if (!value.ok()) return std::string(value.status().message());
  const auto t = TensorFromJson(*value, dtype);
  return t.ok() ? ArrayText(*t) : std::string(t.status().message());
}

TEST(Json, TensorsOfNestedLists) {
  EXPECT_EQ(Read("[[1, 2.5], [-3e1, true]]", DType::kFloat),
            "[[  1.    2.5]\n [-30.    1. ]]");
  EXPECT_EQ(Read("[127, -128]", DType::kInt8), "[ 127 -128]");
  EXPECT_EQ(Read("18446744073709551615", DType::kUint64),
            "18446744073709551615");
  EXPECT_EQ(Read("[True, false]", DType::kBool), "[ True False]");
  EXPECT_EQ(
      Read("[\"a\\u00e9\\n\", 'it', {\"b64\": \"/w==\"}]", DType::kString),
      "[b'a\\xc3\\xa9\\n' b'it' b'\\xff']");
  EXPECT_EQ(Read("[[], []]", DType::kFloat), "[]");
}

// Files of a hundred bytes say such sizes.
TEST(Json, TensorsWithoutElementsAreFewLists) {
  const auto written = [](const Shape& shape) {
    JsonWriter json;
    WriteJson(*Tensor::Allocate(DType::kFloat, shape), json);
    std::string text = json.Take();
    std::erase_if(text, [](char c) { return c == ' ' || c == '\n'; });
    return text;
  };
  EXPECT_EQ(written({2, 0, 3}), "[[],[]]");
  EXPECT_EQ(written({0}), "[]");
  EXPECT_EQ(written({100000, 100000, 100000, 0}), "[]");
}

TEST(Json, WhatIsNone) {
  EXPECT_EQ(Read("[1, 2", DType::kFloat),
            "JSON: expected , or ] at character 5, where it ends");
  EXPECT_EQ(Read("[1] 2", DType::kFloat),
            "JSON: expected the end at character 4");
  EXPECT_EQ(Read("[[1], [2, 3]]", DType::kFloat),
            "lists of level 2 differ: expected 1 elements, got 2");
  EXPECT_EQ(Read("[300]", DType::kInt8), "expected a int8, got 300");
  EXPECT_EQ(Read("[-1]", DType::kUint64), "expected a uint64, got -1");
  EXPECT_EQ(Read("[1.5]", DType::kInt32), "expected a int32, got 1.5");
  EXPECT_EQ(Read("[\"a\"]", DType::kFloat), "expected a float32, got \"a\"");
  for (const char* text : {"", "{", "[", "\"a", "\"\\", "\"\\u12", "{1: 2}",
                           "nothing", "-", "[,]", "{\"a\" 1}"}) {
    EXPECT_FALSE(ParseJson(text).ok()) << text;
  }
  EXPECT_FALSE(ParseJson(std::string(100000, '[')).ok());
}

TEST(Json, IsWrittenAsItIsRead) {
  JsonWriter json;
  WriteJson(Tensor::Vector<std::string>({"\"\\\n\x1b", "\xff"}), json);
  const auto value = ParseJson(json.Take());
  ASSERT_TRUE(value.ok()) << value.status();
  const auto t = TensorFromJson(*value, DType::kString);
  ASSERT_TRUE(t.ok()) << t.status();
  EXPECT_EQ(t->data<std::string>()[0], "\"\\\n\x1b");
  EXPECT_EQ(t->data<std::string>()[1], "\xff");
}

}  // namespace
}  // namespace headrace::command
