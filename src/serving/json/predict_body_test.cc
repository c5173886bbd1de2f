#include "serving/json/predict_body.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "serving/json/predict_answer.h"

namespace headrace::serving {
namespace {

using Arguments = std::vector<Argument>;

StatusOr<PredictBody::Inputs> ReadBody(const std::string& text,
                                       const Arguments& arguments) {
  // A block of its own size: who reads past its end is found out.
  const std::vector<char> bytes(text.begin(), text.end());
  HR_ASSIGN_OR_RETURN(const PredictBody body,
                      PredictBody::Parse({bytes.data(), bytes.size()}));
  return body.Read(arguments);
}

std::string ErrorOf(const std::string& text, const Arguments& arguments) {
  const auto read = ReadBody(text, arguments);
  return read.ok() ? "" : std::string(read.status().message());
}

const Arguments& One() {
  static const auto* one = new Arguments{{"x", DType::kFloat}};
  return *one;
}
const Arguments& Two() {
  static const auto* two =
      new Arguments{{"a", DType::kFloat}, {"b", DType::kInt32}};
  return *two;
}

// Those behind a comma and a space are read by a faster way than those behind a
// tab.
TEST(PredictBody, LongListsOfFloats) {
  const char* numbers[] = {"0.5",  "-12.25", "1e-3",         "0",
                           "-0.0", "NaN",    "-Inf",         "3.4e38",
                           "7",    "1e9",    "16777217.0001"};
  for (int turn = 0; turn < 6; ++turn) {
    const int wrong = turn % 3;
    // Few and many that are plain.
    const size_t step = turn < 3 ? 1 : 43;
    std::string text = "{\"instances\": [";
    for (int row = 0; row < 50; ++row) {
      absl::StrAppend(&text, row == 0 ? "[" : ", [");
      // Of one row an element too few or too many.
      const int columns = row == 40 ? 20 + wrong % 3 - wrong / 2 * 3 : 20;
      for (int i = 0; i < columns; ++i) {
        absl::StrAppend(&text, i == 0 ? "" : ", ",
                        (row * row + i * i * i) % step == 0
                            ? numbers[(row + i) % std::size(numbers)]
                            : absl::StrCat(row, ".", i * 7919));
      }
      absl::StrAppend(&text, "]");
    }
    absl::StrAppend(&text, "]}");
    const auto fast = ReadBody(text, One());
    for (size_t at = 0; (at = text.find(", ", at)) != std::string::npos;) {
      text[at + 1] = '\t';
    }
    const auto slow = ReadBody(text, One());
    EXPECT_EQ(fast.ok(), wrong == 0);
    ASSERT_EQ(fast.status(), slow.status());
    if (!fast.ok()) continue;
    const Tensor &a = fast->tensors[0], &b = slow->tensors[0];
    ASSERT_EQ(a.shape(), b.shape());
    EXPECT_EQ(std::memcmp(a.raw(), b.raw(), a.num_elements() * 4), 0);
  }
}

TEST(PredictBody, ShapesOfRowsAndColumns) {
  const struct {
    const char* text;
    Shape shape;
  } rows[] = {
      {"{\"instances\": [1, 2.5, 3]}", {3}},
      {"{\"instances\": [[1, 2], [3, 4], [5, 6]]}", {3, 2}},
      {"{\"instances\": [{\"x\": [1, 2]}, {\"x\": [3, 4]}]}", {2, 2}},
      {"{\"instances\": [[[[1]]]]}", {1, 1, 1, 1}},
      {"{\"instances\": [[], []]}", {2, 0}},
      {"{\"inputs\": 1}", {}},
      {"{\"inputs\": []}", {0}},
      {"{\"inputs\": [[1, 2, 3]]}", {1, 3}},
      {"{\"inputs\": {\"x\": [1, 2], \"y\": \"ignored\"}}", {2}},
      {"{\"signature_name\": \"s\", \"other\": {}, \"inputs\": [NaN, -Inf]}",
       {2}},
  };
  for (const auto& row : rows) {
    const auto read = ReadBody(row.text, One());
    ASSERT_TRUE(read.ok()) << row.text << read.status();
    EXPECT_EQ(read->tensors[0].shape(), row.shape) << row.text;
    EXPECT_EQ(read->tensors[0].dtype(), DType::kFloat);
  }
  const auto two = ReadBody(
      "{\"instances\": [{\"b\": 1, \"a\": [2]}, {\"a\": [3], "
      "\"b\": 4}]}",
      Two());
  ASSERT_TRUE(two.ok()) << two.status();
  EXPECT_EQ(two->tensors[0].span<float>()[1], 3);
  EXPECT_EQ(two->tensors[1].span<int32_t>()[1], 4);
}

TEST(PredictBody, Errors) {
  const std::string row = "Failed to process element: ";
  const struct {
    const char* text;
    bool two;
    std::string error;
  } rows[] = {
      {"[1]", false, "JSON Value: [1] Is not object"},
      {"{}", false, "Missing 'inputs' or 'instances' key"},
      {"{\"inputs\": 1, \"instances\": 2}", false,
       "JSON Value: {\"inputs\":1,\"instances\":2} not formatted correctly, "
       "expecting only one of 'inputs' or 'instances' keys to exist"},
      {"{\"instances\": 1}", false,
       "Expecting 'instances' to be an list/array"},
      {"{\"instances\": []}", false, "No values in 'instances' array"},
      {"{\"instances\": [1]}", true,
       "instances is a plain list, but expecting list of objects as multiple "
       "input tensors required as per tensorinfo_map"},
      {"{\"inputs\": [1]}", true,
       "inputs is a plain value/list, but expecting an object as multiple "
       "input tensors required as per tensorinfo_map"},
      {"{\"inputs\": {\"a\": 1}}", true,
       "Missing named input: b in 'inputs' object."},
      {"{\"instances\": [{\"x\": 1}, [2]]}", false,
       "Expecting object but got list at item 1 of input list"},
      {"{\"instances\": [1, {\"x\": 2}]}", false,
       "Expecting value/list but got object at item 1 of input list"},
      {"{\"instances\": [{\"y\": 1}]}", false,
       row + "0 of 'instances' list. Error: INVALID_ARGUMENT: JSON object: "
             "does not have named input: x"},
      {"{\"instances\": [{\"a\": 1, \"b\": 2}, {\"a\": 1}]}", true,
       row + "1 of 'instances' list. Error: INVALID_ARGUMENT: JSON object: "
             "keys must be equal to: a,b"},
      {"{\"instances\": [{\"a\": 1, \"b\": \"q\"}]}", true,
       row + "0 key: b of 'instances' list. Error: INVALID_ARGUMENT: JSON "
             "Value: \"q\" Type: String is not of expected type: int32"},
      {"{\"instances\": [[1, 2], [3]]}", false,
       row + "1 of 'instances' list. Error: INVALID_ARGUMENT: Encountered list "
             "at unexpected size: 1 at level: 0 expected size: 2"},
      {"{\"inputs\": [[1, 2], [3, 4, 5, 6]]}", false,
       "Encountered list at unexpected size: 4 at level: 1 expected size: 2"},
      {"{\"inputs\": [[], [1, 2]]}", false,
       "Encountered list at unexpected size: 2 at level: 1 expected size: 0"},
      {"{\"inputs\": [[1], []]}", false,
       "Encountered list at unexpected size: 0 at level: 1 expected size: 1"},
      {"{\"inputs\": [1, [2]]}", false,
       "Encountered list at unexpected level: 1 expected < 1"},
      {"{\"inputs\": [[1], 2]}", false,
       "JSON Value: 2 found at incorrect level: 1 in the JSON DOM. Expected "
       "at level: 2"},
      {"{\"inputs\": {\"x\": {\"y\": 1}}}", false,
       "JSON Value: {\"y\":1} Type: Object is not of expected type: float"},
  };
  for (const auto& r : rows) {
    EXPECT_EQ(ErrorOf(r.text, r.two ? Two() : One()), r.error) << r.text;
  }
  EXPECT_EQ(PredictBody::Parse("{\"signature_name\": 3}")
                ->SignatureName()
                .status()
                .message(),
            "JSON Value: 3 not formatted correctly. 'signature_name' key must "
            "be a string value.");
}

TEST(PredictBody, WhatEachTypeTakes) {
  const struct {
    DType dtype;
    std::vector<const char*> good, bad;
  } rows[] = {
      {DType::kFloat,
       {"1", "-1.5", "1e2", "NaN", "-Infinity", "1e39"},
       {"null", "true", "\"1\"", "{}"}},
      {DType::kDouble, {"1", "1e300", "1e-999"}, {"false", "{\"b64\":\"\"}"}},
      {DType::kInt8, {"127", "-128", "-0"}, {"128", "300", "1.0", "1e2"}},
      {DType::kUint8, {"0", "255", "-0"}, {"256", "-1", "1.0"}},
      {DType::kInt16, {"-32768"}, {"32768", "NaN"}},
      {DType::kInt32, {"2147483647"}, {"2147483648", "1.0", "1e2", "\"1\""}},
      {DType::kInt64,
       {"9223372036854775807", "-9223372036854775808"},
       {"9223372036854775808", "1.0"}},
      {DType::kUint32, {"4294967295"}, {"4294967296", "-1"}},
      {DType::kUint64, {"18446744073709551615"}, {"18446744073709551616"}},
      {DType::kBool, {"true", "false"}, {"1", "null", "\"true\""}},
      {DType::kString,
       {"\"x\"", "{\"b64\": \"aGk=\"}", "\"\""},
       {"1", "null", "{\"b64\": \"*\"}", "{\"b64\": \"\", \"x\": 1}"}},
  };
  for (const auto& row : rows) {
    const Arguments one = {{"x", row.dtype}};
    for (const char* text : row.good) {
      EXPECT_EQ(ErrorOf(absl::StrCat("{\"inputs\": [", text, "]}"), one), "");
    }
    for (const char* text : row.bad) {
      const auto read =
          ReadBody(absl::StrCat("{\"inputs\": [", text, "]}"), one);
      EXPECT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument)
          << DTypeName(row.dtype) << " " << text;
    }
  }
  for (const DType d : {DType::kHalf, DType::kBfloat16, DType::kComplex64}) {
    const auto read = ReadBody("{\"instances\": [1]}", {{"x", d}});
    EXPECT_EQ(read.status().code(), absl::StatusCode::kUnimplemented);
    EXPECT_NE(read.status().message().find(absl::StrCat(
                  "Conversion of JSON Value: 1 to type: ", DTypeName(d))),
              std::string::npos);
  }
  const auto wide = ReadBody("{\"inputs\": [1e39, -1e39, 1e-60]}", One());
  EXPECT_EQ(wide->tensors[0].span<float>()[0],
            std::numeric_limits<float>::infinity());
  EXPECT_EQ(wide->tensors[0].span<float>()[2], 0);
}

TEST(PredictBody, SizesThatTheTextCannotHoldTakeNoMemory) {
  // A billion elements by the first lists.
  std::string text = "{\"inputs\": [[";
  for (int i = 0; i < 30000; ++i) text += i ? ",0" : "0";
  text += "]";
  for (int i = 0; i < 30000; ++i) text += ",0";
  EXPECT_EQ(ErrorOf(text + "]}", One()),
            "JSON Value: 0 found at incorrect level: 1 in the JSON DOM. "
            "Expected at level: 2");
  const std::string deep(300, '[');
  EXPECT_NE(
      ErrorOf("{\"inputs\": " + deep + std::string(300, ']') + "}", One()), "");
}

TEST(PredictBody, EveryCutAndEveryByteIsAnAnswer) {
  const std::string whole =
      "{\"instances\": [{\"a\": [1.5, -2], \"b\": 7}, {\"b\": 8, \"a\": [3, "
      "4]}], \"signature_name\": \"s\"}";
  ASSERT_EQ(ErrorOf(whole, Two()), "");
  for (size_t n = 0; n < whole.size(); ++n) {
    EXPECT_NE(ErrorOf(whole.substr(0, n), Two()), "");
    for (const char c : {'\0', '[', ']', '{', '}', '"', ',', '\\', 'N'}) {
      std::string changed = whole;
      changed[n] = c;
      ErrorOf(changed, Two());
    }
  }
}

TEST(PredictAnswer, RowsAndColumns) {
  const Arguments one = {{"y"}}, two = {{"a"}, {"b_bytes"}};
  const Tensor y = Tensor::Vector<float>({2, 0.5f, 1.0f / 3});
  EXPECT_EQ(*WritePredictAnswer(PredictFormat::kRows, one, {y}),
            "{\n    \"predictions\": [2.0, 0.5, 0.333333343\n    ]\n}");
  EXPECT_EQ(
      *WritePredictAnswer(PredictFormat::kColumns, one, {y.WithShape({3, 1})}),
      "{\n    \"outputs\": [[2.0], [0.5], [0.333333343]]\n}");
  const Tensor s = Tensor::Vector<std::string>({"\"q\"", "hi"});
  const Tensor n = Tensor::Vector<int64_t>({-1, 9223372036854775807});
  EXPECT_EQ(
      *WritePredictAnswer(PredictFormat::kRows, two, {n, s}),
      "{\n    \"predictions\": [\n        {\n            \"a\": -1,\n"
      "            \"b_bytes\": {\"b64\": \"InEi\"}\n        },\n"
      "        {\n            \"a\": 9223372036854775807,\n"
      "            \"b_bytes\": {\"b64\": \"aGk=\"}\n        }\n    ]\n}");
  EXPECT_EQ(*WritePredictAnswer(PredictFormat::kColumns, two,
                                {Tensor::Scalar<bool>(true), s}),
            "{\n    \"outputs\": {\n        \"a\": true,\n        \"b_bytes\": "
            "[{\"b64\": \"InEi\"}, {\"b64\": \"aGk=\"}]\n    }\n}");
  EXPECT_EQ(*WritePredictAnswer(PredictFormat::kColumns, one, {s}),
            "{\n    \"outputs\": [\"\\\"q\\\"\", \"hi\"]\n}");
}

TEST(PredictAnswer, Errors) {
  const Arguments two = {{"a"}, {"b"}};
  const Tensor y = Tensor::Vector<float>({2, 3});
  const auto error = [&](const Tensor& a, const Tensor& b) {
    return std::string(WritePredictAnswer(PredictFormat::kRows, two, {a, b})
                           .status()
                           .message());
  };
  EXPECT_EQ(error(y, Tensor::Scalar<float>(1)),
            "Tensor name: b has no shape information ");
  EXPECT_EQ(error(y, Tensor::Vector<float>({1})),
            "Tensor name: b has inconsistent batch size: 1 expecting: 2");
  EXPECT_EQ(error(y, *Tensor::Allocate(DType::kHalf, {2})),
            "Failed to write JSON value for tensor type: half");
}

}  // namespace
}  // namespace headrace::serving
