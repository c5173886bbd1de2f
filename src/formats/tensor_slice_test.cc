#include "formats/tensor_slice.h"

#include <numeric>

#include "gtest/gtest.h"
#include "tensorflow/core/framework/tensor_slice.pb.h"

namespace headrace {
namespace {

TEST(TensorSlice, TextAndProtoComeBack) {
  for (const char* text : {"", "-", "0,3", "-:2,5:-"}) {
    const TensorSlice slice = *TensorSlice::Parse(text);
    EXPECT_EQ(slice.ToString(), text);
    tensorflow::TensorSliceProto proto;
    slice.ToProto(&proto);
    EXPECT_EQ(*TensorSlice::FromProto(proto), slice);
    std::string name;
    TensorSlice back;
    EXPECT_TRUE(DecodeSliceKey(EncodeSliceKey("n", slice), &name, &back).ok());
    EXPECT_EQ(back, slice);
  }
  for (const char* text : {":", "1", "1,", ",1", "-1,2", "0,0", "0,-1", "a,b",
                           "9223372036854775807,1"}) {
    EXPECT_FALSE(TensorSlice::Parse(text).ok()) << text;
  }
}

TEST(TensorSlice, ShapeAndSlice) {
  EXPECT_TRUE(ParseShapeAndSlice("")->whole);
  const ShapeAndSlice s = *ParseShapeAndSlice("4 3 0,2:-");
  EXPECT_EQ(s.dims, (std::vector<int64_t>{4, 3}));
  EXPECT_EQ(SliceDims(s.slice), (std::vector<int64_t>{2, 3}));
  for (const char* text : {"4 3 0,2", "4 3,2:-", "4 3 3,2:-", "-4 -", "x -",
                           "4 3 ", "9223372036854775807 2 -:-"}) {
    EXPECT_FALSE(ParseShapeAndSlice(text).ok()) << text;
  }
}

TEST(TensorSlice, KeyOfUpstream) {
  EXPECT_EQ(EncodeSliceKey("table", *TensorSlice::Parse("0,3:0,2")),
            std::string("\0table\0\1\1\2\x80\x83\x80\x82", 14));
  std::string name;
  TensorSlice slice;
  const std::string key = EncodeSliceKey("t", *TensorSlice::Parse("5,3:-"));
  for (size_t n = 0; n < key.size(); ++n) {
    EXPECT_FALSE(DecodeSliceKey(key.substr(0, n), &name, &slice).ok());
  }
  EXPECT_FALSE(DecodeSliceKey(key + "x", &name, &slice).ok());
}

// Fills boxes cut from a 4x5x6 tensor and looks each element up.
TEST(TensorSlice, CommonRuns) {
  const std::vector<int64_t> dims = {4, 5, 6};
  const std::vector<const char*> texts = {"-:-:-", "1,2:-:-", "0,4:2,2:-",
                                          "2,1:1,3:2,3", "3,1:4,1:5,1"};
  const auto value = [&](const TensorSlice& box, int64_t i) {
    int64_t out = 0, stride = 1;
    for (int d = 2; d >= 0; --d) {
      out += (box.extents[d].start + i % box.extents[d].length) * stride;
      i /= box.extents[d].length;
      stride *= dims[d];
    }
    return out;
  };
  for (const char* a : texts) {
    for (const char* b : texts) {
      const TensorSlice source = *TensorSlice::Parse(a)->Resolve(dims);
      const TensorSlice target = *TensorSlice::Parse(b)->Resolve(dims);
      int64_t seen = 0;
      const int64_t total = ForEachCommonRun(
          source, target, [&](int64_t from, int64_t to, int64_t count) {
            for (int64_t i = 0; i < count; ++i, ++seen) {
              ASSERT_EQ(value(source, from + i), value(target, to + i));
            }
          });
      EXPECT_EQ(seen, total);
      if (a == texts[0]) {
        EXPECT_EQ(total, *CountElements(SliceDims(target)));
      }
    }
  }
}

}  // namespace
}  // namespace headrace
