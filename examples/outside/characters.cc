// A character model of a text file: a stateful GRU that learns which letter
// comes next, from a dataset of lines, and then writes some of its own.
#include <headrace/headrace.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

namespace tf = headrace::tf;
namespace layers = tf::layers;
using tf::data::Dataset;
using tf::data::Element;

namespace {

constexpr int64_t kLetters = 128, kSteps = 24, kBatch = 16;

std::string WriteText() {
  const std::string path =
      std::filesystem::temp_directory_path() / "headrace_characters.txt";
  std::ofstream file(path);
  for (int i = 0; i < 400; ++i) {
    file << "the quick brown fox jumps over the lazy dog\n";
  }
  return path;
}

// Letters of all lines, one behind the other, as windows of kSteps and the
// letter behind each.
Dataset Windows(const std::string& path) {
  return Dataset::TextLine({path})
      .FlatMap([](const tf::Tensor& line) {
        const tf::Tensor text = tf::StringJoin({line, "\n"});
        return Dataset::FromTensorSlices({tf::Cast(
            tf::DecodeRaw(text, tf::DType::kUint8), tf::DType::kInt32)});
      })
      .Batch(kSteps + 1, /*drop_remainder=*/true)
      .Map([](const tf::Tensor& letters) {
        const auto part = [&](int32_t from) {
          return tf::Slice(letters, tf::Tensor::From<int32_t>({from}),
                           tf::Tensor::From<int32_t>({kSteps}));
        };
        return Element{part(0), part(1)};
      })
      .Shuffle(1000, /*seed=*/5)
      .Batch(kBatch, /*drop_remainder=*/true)
      .Prefetch();
}

struct Writer {
  std::shared_ptr<layers::GRU> gru;
  std::unique_ptr<layers::Sequential> model;
};

Writer MakeWriter(bool stateful) {
  Writer w;
  w.gru = std::make_shared<layers::GRU>(
      64,
      layers::RecurrentOptions{.return_sequences = true, .stateful = stateful});
  w.model = std::make_unique<layers::Sequential>();
  w.model->Add(layers::Embedding(kLetters, 16));
  w.model->AddLayer(w.gru);
  w.model->Add(layers::Dense(kLetters));
  return w;
}

}  // namespace

int main() {
  tf::SetRandomSeed(11);
  const std::string path = WriteText(), saved = path + ".ckpt";
  Writer learner = MakeWriter(/*stateful=*/false);
  tf::Adam adam(0.01);
  tf::metrics::SparseCategoricalAccuracy accuracy;
  const auto progress = tf::train::Fit(
      *learner.model, adam,
      tf::losses::SparseCategoricalCrossentropy({.from_logits = true}),
      Windows(path), {.epochs = 4, .metrics = {&accuracy}});

  // The same weights, one letter at a time: the layer keeps its state.
  tf::Checkpoint({{"model", *learner.model}}).write(saved);
  Writer writer = MakeWriter(/*stateful=*/true);
  tf::Checkpoint checkpoint({{"model", *writer.model}});
  checkpoint.restore(saved, /*partial=*/true);  // weights are made later
  const tf::Function next([&](const std::vector<tf::Tensor>& letter) {
    const tf::Tensor logits = (*writer.model)(letter[0]);
    return std::vector<tf::Tensor>{
        tf::Cast(tf::ArgMax(logits, -1), tf::DType::kInt32)};
  });
  std::string text;
  for (int line = 0; line < 2; ++line) {
    tf::Tensor letter = tf::Tensor::From<int32_t>({'\n'}, {1, 1});
    text.clear();
    for (int i = 0; i < 43; ++i) {
      letter = next({letter})[0];
      text += static_cast<char>(letter.item<int32_t>());
    }
    std::printf("%s\n", text.c_str());
    writer.gru->reset_states();
  }
  for (const char* end : {"", ".ckpt.index", ".ckpt.data-00000-of-00001"}) {
    std::filesystem::remove(path + end);
  }
  const bool learned = text == "the quick brown fox jumps over the lazy dog";
  return learned && progress.metrics[0] > 0.9f ? 0 : 1;
}
