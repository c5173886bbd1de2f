// Elements as bytes, and datasets as graphs.
#include "data/elements.h"

#include "data/dataset_graph.h"
#include "data/element_codec.h"
#include "data/iterate/test_walk.h"

namespace headrace {
namespace {

Tensor Window(std::vector<Element> elements) {
  return DatasetTensor(std::make_shared<const ElementsDataset>(
      ElementSpec{{DType::kInt64}, {Shape()}}, std::move(elements)));
}

Element Sample() {
  return {Tensor::Vector<float>({1, 2, 3}),
          Tensor::Vector<std::string>({"", "words"}),
          Tensor::Scalar<bool>(true),
          Window({{Tensor::Scalar<int64_t>(4)}, {Tensor::Scalar<int64_t>(5)}})};
}

TEST(Elements, BytesAndBack) {
  std::string bytes;
  ASSERT_TRUE(EncodeElement(Sample(), &bytes).ok());
  StatusOr<Element> back = DecodeElement(bytes);
  ASSERT_TRUE(back.ok()) << back.status();
  ASSERT_EQ(back->size(), 4u);
  EXPECT_EQ((*back)[0].data<float>()[2], 3);
  EXPECT_EQ((*back)[1].data<std::string>()[1], "words");
  EXPECT_EQ((*DatasetOf((*back)[3]))->Cardinality(), 2);
}

TEST(Elements, EveryCutIsAnError) {
  std::string bytes;
  ASSERT_TRUE(EncodeElement(Sample(), &bytes).ok());
  for (size_t n = 0; n < bytes.size(); ++n) {
    EXPECT_FALSE(DecodeElement(StringView(bytes).substr(0, n)).ok()) << n;
  }
  EXPECT_FALSE(DecodeElement(bytes + '\0').ok());
}

TEST(Elements, NoFlipBreaksAnything) {
  std::string bytes;
  ASSERT_TRUE(EncodeElement(Sample(), &bytes).ok());
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = bytes;
      flipped[i] ^= static_cast<char>(1 << bit);
      DecodeElement(flipped).status().IgnoreError();
    }
  }
}

TEST(DatasetGraphs, WindowsAndBack) {
  const Tensor inner = Window({{Tensor::Scalar<int64_t>(7)}});
  const ElementsDataset outer({{DType::kVariant}, {Shape()}}, {{inner}});
  StatusOr<DatasetGraph> graph = GraphOfDataset(outer);
  ASSERT_TRUE(graph.ok()) << graph.status();
  StatusOr<DatasetPtr> back = DatasetOfGraph(*graph);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ((*back)->Cardinality(), 1);
  for (size_t n = 0; n < graph->bytes.size(); ++n) {
    DatasetOfGraph({graph->bytes.substr(0, n), graph->output})
        .status()
        .IgnoreError();
  }
  EXPECT_FALSE(DatasetOfGraph({graph->bytes, "another"}).ok());
}

TEST(DatasetGraphs, OnlyWhatLiesInMemory) {
  const DatasetPtr range = Pipeline().Range(3).Finish();
  EXPECT_EQ(GraphOfDataset(*range).status().code(),
            absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace headrace
