#include <cstdio>
#include <fstream>

#include "gtest/gtest.h"
#include "headrace/headrace.h"

namespace tf = headrace::tf;
namespace data = tf::data;
using data::Dataset;
using data::Element;

namespace {

using Ints = std::vector<int64_t>;

// The numbers of a dataset of one int64 component.
Ints All(const Dataset& d) {
  Ints all;
  for (const Element& e : d) {
    for (const int64_t v : e.at(0).vector<int64_t>()) all.push_back(v);
  }
  return all;
}

std::vector<std::string> Texts(const Dataset& d) {
  std::vector<std::string> all;
  for (const Element& e : d) all.push_back(e.at(0).item<std::string>());
  return all;
}

std::string Written(const std::string& name, const std::string& text) {
  const std::string path = testing::TempDir() + "data_test_" + name;
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

TEST(Data, Sources) {
  EXPECT_EQ(All(Dataset::Range(3)), (Ints{0, 1, 2}));
  EXPECT_EQ(All(Dataset::Range(5, 0, -2)), (Ints{5, 3, 1}));
  const tf::Tensor x = tf::Tensor::From<int64_t>({1, 2, 3, 4}, {2, 2});
  EXPECT_EQ(All(Dataset::FromTensors({x})), (Ints{1, 2, 3, 4}));
  const Dataset rows = Dataset::FromTensorSlices({x});
  EXPECT_EQ(rows.cardinality(), 2);
  EXPECT_EQ(rows.spec().shapes[0], (tf::TensorShape{2}));
  EXPECT_THROW(Dataset::FromTensorSlices({tf::Tensor(1.0f)}), tf::Error);
  EXPECT_THROW(Dataset::FromTensorSlices({x, tf::Tensor::From<float>({1})}),
               tf::Error);
  EXPECT_THROW(Dataset::FromTensors({}), tf::Error);
}

TEST(Data, Files) {
  const std::string lines = Written("lines.txt", "one\ntwo\n");
  EXPECT_EQ(Texts(Dataset::TextLine({lines})),
            (std::vector<std::string>{"one", "two"}));
  const std::string fixed = Written("fixed.bin", "HaabbF");
  EXPECT_EQ(Texts(Dataset::FixedLengthRecord({fixed}, 2, 1, 1)),
            (std::vector<std::string>{"aa", "bb"}));
  const std::string records = testing::TempDir() + "data_test_records";
  tf::TFRecordWriter writer(records, "GZIP");
  writer.write("first"), writer.write("second"), writer.close();
  EXPECT_EQ(Texts(Dataset::TFRecord({records}, "GZIP")),
            (std::vector<std::string>{"first", "second"}));
  const std::string pattern = testing::TempDir() + "data_test_lin*";
  const Dataset names = Dataset::ListFiles({pattern}, false);
  EXPECT_EQ(Texts(names), (std::vector<std::string>{lines}));
  EXPECT_EQ(Texts(names.Interleave([](const tf::Tensor& file) {
              return Dataset::TextLine(file);
            })),
            (std::vector<std::string>{"one", "two"}));
  EXPECT_THROW(Dataset::ListFiles({"/no/such/file*"}), tf::Error);
  EXPECT_THROW(Texts(Dataset::TextLine({"/no/such/file"})), tf::Error);
}

TEST(Data, FunctionsAreTraced) {
  int traces = 0;
  const tf::Variable offset(tf::Tensor(int64_t{10}));
  const Dataset d = Dataset::Range(3).Map([&](const tf::Tensor& x) {
    ++traces;
    return x * x + offset;
  });
  EXPECT_EQ(All(d), (Ints{10, 11, 14}));
  EXPECT_EQ(traces, 1);
  EXPECT_EQ(
      All(Dataset::Range(100).Map([](const tf::Tensor& x) { return x + 1; },
                                  {.num_parallel_calls = 2})),
      All(Dataset::Range(1, 101)));
  EXPECT_EQ(All(Dataset::Range(6).Filter([](const tf::Tensor& x) {
              return tf::Equal(tf::FloorMod(x, tf::Tensor(int64_t{2})),
                               tf::Tensor(int64_t{0}));
            })),
            (Ints{0, 2, 4}));
  EXPECT_EQ(All(Dataset::Range(6).TakeWhile(
                [](const tf::Tensor& x) { return x < 2; })),
            (Ints{0, 1}));
  EXPECT_THROW(Dataset::Range(3).Filter([](const tf::Tensor& x) { return x; }),
               tf::Error);
  EXPECT_THROW(Dataset::Range(3).Map(
                   [](const tf::Tensor& a, const tf::Tensor& b) { return a; }),
               tf::Error);
}

TEST(Data, DatasetsOfDatasets) {
  const auto repeated = [](const tf::Tensor& x) {
    return Dataset::FromTensors({x}).Repeat(2);
  };
  EXPECT_EQ(All(Dataset::Range(2).FlatMap(repeated)), (Ints{0, 0, 1, 1}));
  EXPECT_EQ(All(Dataset::Range(2).Interleave(repeated, {.cycle_length = 2})),
            (Ints{0, 1, 0, 1}));
  EXPECT_EQ(All(Dataset::Range(2).Interleave(
                repeated, {.cycle_length = 2, .num_parallel_calls = 2})),
            (Ints{0, 1, 0, 1}));
  const Dataset windows =
      Dataset::Range(5).Window(2, 1, 1, true).FlatMap([](const Dataset& w) {
        return w.Batch(2);
      });
  EXPECT_EQ(All(windows), (Ints{0, 1, 1, 2, 2, 3, 3, 4}));
  EXPECT_THROW(
      Dataset::Range(2).FlatMap([](const Dataset& w) { return w.Batch(2); }),
      tf::Error);
}

TEST(Data, Groups) {
  const Dataset batches = Dataset::Range(5).Batch(2);
  EXPECT_EQ(batches.spec().shapes[0], (tf::TensorShape{-1}));
  EXPECT_EQ(Dataset::Range(5).Batch(2, true).spec().shapes[0],
            (tf::TensorShape{2}));
  EXPECT_EQ(All(batches.Unbatch()), (Ints{0, 1, 2, 3, 4}));
  const Dataset lengths = Dataset::Range(1, 4).Map([](const tf::Tensor& n) {
    return tf::Fill(tf::ExpandDims(n, tf::Tensor(0)), n);
  });
  EXPECT_EQ(All(lengths.PaddedBatch(3)), (Ints{1, 0, 0, 2, 2, 0, 3, 3, 3}));
  EXPECT_EQ(All(lengths.PaddedBatch(3, {{4}}, {tf::Tensor(int64_t{-1})})),
            (Ints{1, -1, -1, -1, 2, 2, -1, -1, 3, 3, 3, -1}));
  EXPECT_THROW(lengths.PaddedBatch(3, {{4}, {4}}), tf::Error);
  EXPECT_THROW(All(Dataset::Range(3).Batch(0)), tf::Error);
}

TEST(Data, OrderAndNumber) {
  // TensorFlow's orders for the seeds.
  tf::SetRandomSeed(3);
  EXPECT_EQ(All(Dataset::Range(10).Shuffle(4, 5)),
            (Ints{0, 3, 1, 6, 5, 8, 7, 9, 4, 2}));
  tf::Tensor first = tf::layers::Dense(2)(tf::Tensor::From<float>({1}, {1, 1}));
  EXPECT_EQ(All(Dataset::Range(6).Shuffle(6)), (Ints{3, 4, 0, 5, 1, 2}));
  EXPECT_EQ(All(Dataset::Range(9).Skip(1).Take(3).Repeat(2)),
            (Ints{1, 2, 3, 1, 2, 3}));
  EXPECT_EQ(All(Dataset::Range(7).Shard(3, 1)), (Ints{1, 4}));
  EXPECT_EQ(All(Dataset::Range(2).Concatenate(Dataset::Range(7, 8))),
            (Ints{0, 1, 7}));
  EXPECT_EQ(Dataset::Range(2).Repeat().cardinality(),
            data::kInfiniteCardinality);
  for (const Element& e : Dataset::Range(5, 7).Enumerate(1)) {
    EXPECT_EQ(e[0].item<int64_t>() + 4, e[1].item<int64_t>());
  }
  EXPECT_EQ(All(Dataset::Zip({Dataset::Range(9), Dataset::Range(2)})),
            (Ints{0, 1}));
  EXPECT_EQ(All(Dataset::Range(3).Cache().Prefetch().Repeat(2)),
            (Ints{0, 1, 2, 0, 1, 2}));
}

Dataset Counted(int64_t stop, int* begun) {
  return Dataset::FromGenerator(
      [stop, begun]() -> Dataset::NextFunction {
        ++*begun;
        auto next = std::make_shared<int64_t>(0);
        return [next, stop](Element* e) {
          if (*next == stop) return false;
          *e = {tf::Tensor((*next)++)};
          return true;
        };
      },
      {{tf::DType::kInt64}, {{}}});
}

TEST(Data, Generators) {
  int begun = 0;
  const Dataset d = Counted(3, &begun);
  EXPECT_EQ(All(d.Repeat(2)), (Ints{0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(begun, 2);
  const Dataset wrong = Dataset::FromGenerator(
      []() -> Dataset::NextFunction {
        return [](Element* e) {
          *e = {tf::Tensor(1.0f)};
          return true;
        };
      },
      {{tf::DType::kInt64}, {{}}});
  EXPECT_THROW(All(wrong), tf::Error);
  const Dataset throwing = Dataset::FromGenerator(
      []() -> Dataset::NextFunction {
        return [](Element*) -> bool { throw std::runtime_error("no more"); };
      },
      {{tf::DType::kInt64}, {{}}});
  try {
    All(throwing.Prefetch(1));
    FAIL();
  } catch (const tf::Error& e) {
    EXPECT_NE(std::string(e.what()).find("no more"), std::string::npos);
  }
}

TEST(Data, PlacesAreSaved) {
  const std::string path = testing::TempDir() + "data_place/c";
  int begun = 0;
  auto pipeline = [&] {
    return Dataset::Zip({Dataset::Range(20).Shuffle(8, 3).Repeat(),
                         Counted(1000, &begun)})
        .Map([](const tf::Tensor& a, const tf::Tensor& b) {
          return a * 1000 + b;
        })
        .Batch(3);
  };
  data::Iterator first(pipeline());
  Element e;
  for (int i = 0; i < 9; ++i) ASSERT_TRUE(first.Next(&e));
  tf::Checkpoint({{"place", first}}).write(path);
  data::Iterator second(pipeline());
  tf::Checkpoint({{"place", second}}).restore(path);
  for (int i = 0; i < 9; ++i) {
    Element expected;
    ASSERT_TRUE(first.Next(&expected));
    ASSERT_TRUE(second.Next(&e));
    EXPECT_EQ(e[0].vector<int64_t>(), expected[0].vector<int64_t>());
  }
}

TEST(Data, ComponentsHaveNames) {
  using data::Named;
  const tf::Tensor x = tf::Tensor::From<int64_t>({1, 2, 3});
  const Dataset rows =
      Dataset::FromTensorSlices(Named{{"y", x * 10}, {"x", x}});
  EXPECT_EQ(rows.spec().names, (std::vector<std::string>{"x", "y"}));
  const Dataset pairs = rows.Skip(1).Map([](const Named& e) {
    return std::pair(Named{{"sum", e.at("x") + e.at("y")}}, e.at("x"));
  });
  const Dataset batches =
      pairs.Filter([](const Named& e, const tf::Tensor& x) { return x > 0; })
          .Batch(2)
          .Prefetch();
  for (const Element& e : batches) {
    EXPECT_EQ(batches.NamedOf(e).at("sum").vector<int64_t>(), (Ints{22, 33}));
    EXPECT_EQ(e[1].vector<int64_t>(), (Ints{2, 3}));
  }
  EXPECT_EQ(batches.IndexOf("sum"), 0u);
  EXPECT_THROW(batches.IndexOf("x"), tf::Error);
  const Dataset both = Dataset::Zip({Dataset::Range(3), rows});
  EXPECT_EQ(both.spec().names, (std::vector<std::string>{"", "x", "y"}));
  EXPECT_THROW(Dataset::Range(2).Map([](const Named& e) { return e; }),
               tf::Error);
  EXPECT_THROW(rows.Map([](const Named&, const tf::Tensor& x) { return x; }),
               tf::Error);
}

TEST(Data, KeepsAState) {
  const Dataset sums = Dataset::Range(1, 5).Scan(
      {tf::Tensor(int64_t{0})}, [](const Element& s, const Element& e) {
        const tf::Tensor sum = s[0] + e[0];
        return std::pair(Element{sum}, Element{sum * 2});
      });
  EXPECT_EQ(All(sums), (Ints{2, 6, 12, 20}));
  const Element last = Dataset::Range(5).Reduce(
      {tf::Tensor(int64_t{1}), tf::Tensor(int64_t{0})},
      [](const Element& s, const Element& e) {
        return Element{s[0] + e[0], s[1] + tf::Tensor(int64_t{1})};
      });
  EXPECT_EQ(last[0].item<int64_t>(), 11);
  EXPECT_EQ(last[1].item<int64_t>(), 5);
  // A state whose shape changes is traced with what both may be.
  const Element grown = Dataset::Range(3).Reduce(
      {tf::Tensor::From<int64_t>({7})}, [](const Element& s, const Element& e) {
        return Element{tf::ConcatV2({s[0], tf::ExpandDims(e[0], 0)}, 0)};
      });
  EXPECT_EQ(grown[0].vector<int64_t>(), (Ints{7, 0, 1, 2}));
  EXPECT_THROW(Dataset::Range(3).Reduce(
                   {tf::Tensor(1.0f)},
                   [](const Element& s, const Element& e) { return e; }),
               tf::Error);
}

TEST(Data, GroupsByKey) {
  const Dataset parity = Dataset::Range(7).GroupByWindow(
      [](const tf::Tensor& x) {
        return tf::FloorMod(x, tf::Tensor(int64_t{2}));
      },
      [](const tf::Tensor& key, const Dataset& window) {
        return window.Batch(3);
      },
      3);
  EXPECT_EQ(All(parity), (Ints{0, 2, 4, 1, 3, 5, 6}));
  const auto fill = [](const tf::Tensor& n) {
    return tf::Fill(tf::ExpandDims(n, 0), n);
  };
  const Dataset rows =
      Dataset::FromTensorSlices({tf::Tensor::From<int64_t>({1, 4, 2, 3, 1})})
          .Map(fill);
  const auto length = [](const tf::Tensor& row) { return tf::Size(row); };
  EXPECT_EQ(All(rows.BucketBySequenceLength(length, {3}, {2, 2})),
            (Ints{1, 0, 2, 2, 4, 4, 4, 4, 3, 3, 3, 0, 1}));
  EXPECT_THROW(rows.BucketBySequenceLength(length, {3}, {2}), tf::Error);
  EXPECT_EQ(All(Dataset::Range(5).Batch(2).Rebatch(3)), (Ints{0, 1, 2, 3, 4}));
}

TEST(Data, Choices) {
  const Dataset a = Dataset::Range(3), b = Dataset::Range(10, 13);
  const auto numbers = [](const Ints& v) {
    return Dataset::FromTensorSlices({tf::Tensor::From(v)});
  };
  EXPECT_EQ(All(Dataset::Choose({a, b}, numbers({0, 1, 1, 0}))),
            (Ints{0, 10, 11, 1}));
  EXPECT_EQ(All(Dataset::Sample({a, b}, {1, 0})), (Ints{0, 1, 2}));
  EXPECT_EQ(All(Dataset::Sample({a, b}, {}, 3)).size(), 6u);
  EXPECT_THROW(Dataset::Sample({a, b}, {1}), tf::Error);
  EXPECT_THROW(Dataset::Sample({a, b}, {1, -1}), tf::Error);
  EXPECT_THROW(Dataset::Choose({}, a), tf::Error);
  EXPECT_THROW(Dataset::Choose({a}, a.Batch(2)), tf::Error);
  EXPECT_EQ(All(Dataset::Random(5).Take(2)), All(Dataset::Random(5).Take(2)));
  EXPECT_EQ(All(numbers({1, 2, 1, 3, 2}).Unique()), (Ints{1, 2, 3}));
  const Dataset broken = numbers({2, 0, 1}).Map([](const tf::Tensor& x) {
    return tf::FloorDiv(tf::Tensor(int64_t{6}), x);
  });
  EXPECT_EQ(All(broken.IgnoreErrors()), (Ints{3, 6}));
}

TEST(Data, ParsesExamples) {
  // {"tags": ["a", "b"], "x": [1, 2]} and {"x": [3, 4]} by TensorFlow.
  const std::vector<std::string> written = {
      "\n\x1f\n\x10\n\x04tags\x12\x08\n\x06\n\x01\x61\n\x01\x62\n\x0b\n\x01x"
      "\x12\x06\x1a\x04\n\x02\x01\x02",
      "\n\x0d\n\x0b\n\x01x\x12\x06\x1a\x04\n\x02\x03\x04"};
  const data::Feature pair = {tf::DType::kInt64, {2}};
  const data::Feature tags = {.dtype = tf::DType::kString, .is_sequence = true};
  const Dataset parsed =
      Dataset::FromTensorSlices({tf::Tensor::From(written)})
          .Batch(2)
          .Map([&](const tf::Tensor& records) {
            return data::ParseExamples(records, {{"x", pair}, {"tags", tags}});
          });
  for (const Element& e : parsed) {
    const data::Named found = parsed.NamedOf(e);
    EXPECT_EQ(found.at("x").vector<int64_t>(), (Ints{1, 2, 3, 4}));
    EXPECT_EQ(found.at("tags").vector<std::string>(),
              (std::vector<std::string>{"a", "b", "", ""}));
  }
  const tf::Tensor one(written[1]);
  EXPECT_EQ(data::ParseExamples(one, {{"x", pair}}).at("x").shape(),
            (tf::TensorShape{2}));
  const data::Feature missing = {tf::DType::kFloat32, {}, tf::Tensor(0.5f)};
  EXPECT_EQ(data::ParseExamples(one, {{"y", missing}}).at("y").item<float>(),
            0.5f);
  EXPECT_THROW(data::ParseExamples(one, {{"y", pair}}), tf::Error);
  EXPECT_THROW(data::ParseExamples("no", {{"x", pair}}), tf::Error);
  EXPECT_THROW(data::ParseExamples(one, {}), tf::Error);
  EXPECT_THROW(data::ParseExamples(one, {{"x", {tf::DType::kInt32}}}),
               tf::Error);
  EXPECT_THROW(data::ParseExamples(one, {{"x", {tf::DType::kInt64, {-1}}}}),
               tf::Error);
}

TEST(Data, Folders) {
  const std::string folder = testing::TempDir() + "data_test_saved";
  const auto squares = [](const tf::Tensor& x) { return x * x; };
  const Dataset d = Dataset::Range(7).Map(squares);
  d.Save(folder, "SNAPPY");
  const Dataset loaded = Dataset::Load(folder, "SNAPPY");
  EXPECT_EQ(loaded.cardinality(), 7);
  EXPECT_EQ(All(loaded), All(d));
  const auto itself = [](const tf::Tensor& x) { return x; };
  Dataset::Range(6).SaveInShards(folder, itself);
  EXPECT_EQ(All(Dataset::Load(folder)), (Ints{0, 1, 2, 3, 4, 5}));

  const tf::Tensor x = tf::Tensor::From<float>({1, 2, 3});
  const tf::Tensor y = tf::Tensor::From<int64_t>({4, 5, 6});
  const auto named = Dataset::FromTensorSlices(data::Named{{"x", x}, {"y", y}});
  named.Save(folder);
  EXPECT_EQ(Dataset::Load(folder).spec().names, named.spec().names);
  const Dataset snapshot = named.Snapshot(folder + "_snapshot");
  EXPECT_EQ(snapshot.spec().names, named.spec().names);
  for (int turn = 0; turn < 2; ++turn) {
    Ints seen;
    for (const Element& e : snapshot) seen.push_back(e[1].item<int64_t>());
    EXPECT_EQ(seen, (Ints{4, 5, 6}));
  }
  EXPECT_THROW(Dataset::Load(folder + "_nowhere"), tf::Error);
}

}  // namespace
