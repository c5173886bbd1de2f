// Trains a small convolutional network on scanned digits, in C++; the twin of
// train_digits.py, whose checkpoints it restores, and the other way round.
//
//   train_digits --folder F [--steps N]   trains; goes on where F's newest
//                                         checkpoint stopped
//   train_digits --folder F --evaluate    restores it and tests only
//
// The last line is "test accuracy: 0.9xxx". A checkpoint holds the model, the
// optimizer and the place in the data.
#include <headrace/headrace.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace tf = headrace::tf;
namespace layers = tf::layers;
using tf::data::Dataset;

constexpr int64_t kSeed = 17, kSaveEvery = 50;

// Rows of 64 pixels (0 to 16) and the digit; every fifth is for testing.
Dataset Rows(const std::string& path, bool test) {
  return Dataset::FixedLengthRecord({path}, 65)
      .Enumerate()
      .Filter([test](const tf::Tensor& i, const tf::Tensor&) {
        const tf::Tensor place = tf::FloorMod(i, tf::Tensor(int64_t{5}));
        return tf::Equal(place >= 4, tf::Tensor(test));
      });
}

// Batches of images [n, 8, 8, 1], 0 to 1, and digits.
Dataset Batches(const Dataset& rows, int64_t size) {
  return rows.Batch(size).Map([](const tf::Tensor&, const tf::Tensor& row) {
    const tf::Tensor bytes = tf::DecodeRaw(row, tf::DType::kUint8);
    const auto parts =
        tf::SplitV(bytes, tf::Tensor::From<int32_t>({64, 1}), tf::Tensor(1), 2);
    const tf::Tensor pixels = tf::Cast(parts[0], tf::DType::kFloat32) / 16;
    return tf::data::Element{
        tf::Reshape(pixels, tf::Tensor::From<int32_t>({-1, 8, 8, 1})),
        parts[1]};
  });
}

int Run(const std::string& folder, const std::string& path, int64_t steps,
        bool evaluate) {
  tf::SetRandomSeed(kSeed);
  layers::Sequential model(
      layers::Conv2D(16, 3, {.padding = "same", .activation = "relu"}),
      layers::Conv2D(32, 3, {.padding = "same", .activation = "relu"}),
      layers::MaxPool2D(), layers::Flatten(),
      layers::Dense(64, {.activation = "relu"}), layers::Dense(10));
  tf::Adam adam(0.001);
  const Dataset rows = Rows(path, /*test=*/false).Shuffle(2000, kSeed);
  tf::data::Iterator batches(Batches(rows.Repeat(), 32));
  tf::Checkpoint checkpoint(
      {{"model", model}, {"optimizer", adam}, {"batches", batches}});
  tf::CheckpointManager manager(checkpoint, folder, {.max_to_keep = 3});
  const std::string latest = manager.restore_or_initialize();
  if (!latest.empty()) std::printf("restored %s\n", latest.c_str());
  if (evaluate && latest.empty()) {
    std::fprintf(stderr, "train_digits: no checkpoint in %s\n", folder.c_str());
    return 1;
  }
  const tf::losses::SparseCategoricalCrossentropy loss({.from_logits = true});
  if (!evaluate) {
    tf::EventFileWriter events(folder);
    tf::train::Fit(model, adam, loss, batches,
                   {.steps = steps,
                    .manager = &manager,
                    .save_every = kSaveEvery,
                    .events = &events});
  }
  tf::metrics::SparseCategoricalAccuracy accuracy;
  tf::train::Evaluate(model, loss, Batches(Rows(path, true), 500), {&accuracy});
  std::printf("test accuracy: %.4f\n", accuracy.result().item<float>());
  return 0;
}

int main(int argc, char** argv) {
  std::string folder = "digits", data = "examples/data/digits.bin";
  bool evaluate = false;
  int64_t steps = 1350;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    const bool more = i + 1 < argc;
    if (flag == "--evaluate") {
      evaluate = true;
    } else if (flag == "--folder" && more) {
      folder = argv[++i];
    } else if (flag == "--data" && more) {
      data = argv[++i];
    } else if (flag == "--steps" && more) {
      steps = std::atoll(argv[++i]);
    } else {
      std::fprintf(stderr,
                   "usage: train_digits [--folder F] [--data FILE] "
                   "[--steps N] [--evaluate]\n");
      return 2;
    }
  }
  try {
    return Run(folder, data, steps, evaluate);
  } catch (const tf::Error& e) {
    std::fprintf(stderr, "train_digits: %s\n", e.what());
    return 1;
  }
}
