// Trains a character LSTM that tells the language of a surname, in C++; the
// twin of train_names.py, with the same network and data.
//
//   train_names --folder F [--epochs N] [--data FILE]
//
// F keeps checkpoints of the model, the optimizer and the place in the data:
// killed at any moment and started again, the program goes on there. The last
// line is "test accuracy: 0.xxxx".
#include <headrace/headrace.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace tf = headrace::tf;
namespace layers = tf::layers;
using tf::data::Dataset;
using tf::data::Element;

constexpr int64_t kNames = 7631, kBatch = 32;  // to train on
constexpr int64_t kSeed = 17, kSaveEvery = 200;

const std::vector<std::string>& Languages() {
  static const std::vector<std::string> languages = {
      "Croatian", "Dutch",   "Finnish", "French", "German",
      "Irish",    "Italian", "Polish",  "Slovak", "Spanish"};
  return languages;
}

// The letters of a line's name, from "<" to ">", and its language's number.
Element Example(const tf::Tensor& line) {
  const tf::Tensor fields =
      tf::StringSplitV2(tf::ExpandDims(line, 0), "\t").values;
  const auto field = [&](int32_t i) { return tf::GatherV2(fields, i, 0); };
  const tf::Tensor text = tf::StringJoin({"<", field(1), ">"});
  const tf::Tensor letters = tf::DecodeRaw(text, tf::DType::kUint8);
  const tf::Tensor known = tf::Tensor::From(Languages());
  const tf::Tensor is = tf::Cast(tf::Equal(field(0), known), tf::DType::kInt32);
  return {tf::Cast(letters, tf::DType::kInt32), tf::ArgMax(is, 0)};
}

// Names; every fifth is for testing.
Dataset Names(const std::string& path, bool test) {
  return Dataset::TextLine({path})
      .Enumerate()
      .Filter([test](const tf::Tensor& i, const tf::Tensor&) {
        const tf::Tensor place = tf::FloorMod(i, tf::Tensor(int64_t{5}));
        return tf::Equal(place >= 4, tf::Tensor(test));
      })
      .Map([](const tf::Tensor&, const tf::Tensor& line) {
        return Example(line);
      });
}

Dataset TrainingBatches(const std::string& path) {
  return Names(path, /*test=*/false)
      .Cache()
      .Shuffle(kNames, kSeed)
      .BucketBySequenceLength(
          [](const tf::Tensor& letters, const tf::Tensor&) {
            return tf::Size(letters);
          },
          {8, 10, 12, 16}, std::vector<int64_t>(5, kBatch))
      .Repeat()
      .Prefetch(2);
}

void Run(const std::string& folder, const std::string& path, int64_t epochs) {
  tf::SetRandomSeed(kSeed);
  layers::Sequential model(
      layers::Embedding(256, 32, {.mask_zero = true}),
      layers::Bidirectional(layers::LSTM(64)), layers::Dropout(0.3),
      layers::Dense(static_cast<int64_t>(Languages().size())));
  const int64_t steps = epochs * kNames / kBatch;
  tf::Adam adam(tf::schedules::CosineDecay(0.006, static_cast<double>(steps)));
  tf::data::Iterator batches(TrainingBatches(path));
  tf::Checkpoint checkpoint(
      {{"model", model}, {"optimizer", adam}, {"batches", batches}});
  tf::CheckpointManager manager(checkpoint, folder, {.max_to_keep = 2});
  const std::string latest = manager.restore_or_initialize();
  if (!latest.empty()) std::printf("restored %s\n", latest.c_str());
  const tf::losses::SparseCategoricalCrossentropy loss({.from_logits = true});
  tf::metrics::SparseCategoricalAccuracy accuracy;
  tf::train::Fit(model, adam, loss, batches,
                 {.steps = steps,
                  .metrics = {&accuracy},
                  .manager = &manager,
                  .save_every = kSaveEvery});
  accuracy.Reset();
  tf::train::Evaluate(model, loss, Names(path, true).PaddedBatch(256),
                      {&accuracy});
  std::printf("test accuracy: %.4f\n", accuracy.result().item<float>());
}

int main(int argc, char** argv) {
  std::string folder = "names", data = "examples/data/surnames.txt";
  int64_t epochs = 15;
  for (int i = 1; i < argc; i += 2) {
    const std::string flag = argv[i];
    const std::string value = i + 1 < argc ? argv[i + 1] : "";
    if (flag == "--folder" && !value.empty()) {
      folder = value;
    } else if (flag == "--data" && !value.empty()) {
      data = value;
    } else if (flag == "--epochs" && std::atoll(value.c_str()) > 0) {
      epochs = std::atoll(value.c_str());
    } else {
      std::fprintf(stderr,
                   "usage: train_names [--folder F] [--epochs N] "
                   "[--data FILE]\n");
      return 2;
    }
  }
  try {
    Run(folder, data, epochs);
  } catch (const tf::Error& e) {
    std::fprintf(stderr, "train_names: %s\n", e.what());
    return 1;
  }
  return 0;
}
