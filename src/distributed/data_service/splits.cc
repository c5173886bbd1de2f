#include "distributed/data_service/splits.h"

#include "base/mutex.h"
#include "data/transform/shard.h"
#include "function/dataset_writer.h"
#include "tensor/tensor_proto.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace headrace::distributed::data_service {
namespace {

void Gather(const DatasetPtr& dataset, std::vector<DatasetPtr>* sources) {
  const std::vector<DatasetPtr> inputs = dataset->inputs();
  if (inputs.empty()) sources->push_back(dataset);
  for (const DatasetPtr& input : inputs) Gather(input, sources);
}

// Where an iterator stands among those of a walk: its prefix, but for the
// numbers of repetitions ("FiniteRepeat[3]").
std::string PlaceOf(const std::string& prefix) {
  const std::string repeat = "Repeat[";
  std::string out;
  size_t at = 0;
  while (true) {
    const size_t found = prefix.find(repeat, at);
    if (found == std::string::npos) return out + prefix.substr(at);
    out += prefix.substr(at, found + repeat.size() - at);
    at = prefix.find(']', found);
    if (at == std::string::npos) return out;
  }
}

// Goes to the elements that it is told to give, one after the other.
class SharedSource : public DatasetIterator {
 public:
  SharedSource(IteratorPtr all, int source, AskForSplit ask, int64_t repetition)
      : DatasetIterator(all->prefix()),
        all_(std::move(all)),
        source_(source),
        ask_(std::move(ask)),
        repetition_(repetition) {}
  Status Start(PullContext& c) override { return all_->Start(c); }
  Status Next(PullContext& c, Element* out, bool* end) override {
    int64_t index = 0;
    if (!ended_) {
      HR_RETURN_IF_ERROR(ask_(source_, repetition_, false, &index, &ended_));
    }
    *end = ended_;
    if (ended_) return OkStatus();
    if (index < at_) {
      return Internal("a source of the data service goes back from element ",
                      at_, " to ", index);
    }
    int64_t skipped = 0;
    HR_RETURN_IF_ERROR(all_->Skip(c, index - at_, &skipped));
    at_ = index + 1;
    HR_RETURN_IF_ERROR(all_->Next(c, out, end));
    if (!*end) return OkStatus();
    return ask_(source_, repetition_, true, &index, &ended_);
  }
  Status Save(PullContext&, StateWriter&) override { return NoPlace(); }
  Status Restore(PullContext&, const StateReader&) override {
    return NoPlace();
  }

 private:
  static Status NoPlace() {
    return Unimplemented("a worker's walk for the data service has no place");
  }

  const IteratorPtr all_;
  const int source_;
  const AskForSplit ask_;
  const int64_t repetition_;
  int64_t at_ = 0;
  bool ended_ = false;
};

class Shares : public SourceShares {
 public:
  Shares(const Dataset& dataset, AskForSplit ask) : ask_(std::move(ask)) {
    std::vector<DatasetPtr> sources;
    Gather(dataset.shared_from_this(), &sources);
    for (size_t i = 0; i < sources.size(); ++i) {
      numbers_[sources[i].get()].push_back(static_cast<int>(i));
    }
  }
  IteratorPtr Of(const Dataset& source, IteratorPtr all) override {
    MutexLock lock(mutex_);
    const auto numbers = numbers_.find(&source);
    // What a rewrite put there, or a function made.
    if (numbers == numbers_.end()) return all;
    const auto [at, is_new] = places_.try_emplace(PlaceOf(all->prefix()));
    Place& place = at->second;
    if (is_new) {
      // One dataset in several places: the first place to start has the first
      // number, in all walks alike, as they start in the same order.
      int& taken = taken_[&source];
      const size_t last = numbers->second.size() - 1;
      place.source = numbers->second[std::min<size_t>(taken++, last)];
    }
    return std::make_unique<SharedSource>(std::move(all), place.source, ask_,
                                          place.repetitions++);
  }

 private:
  struct Place {
    int source = 0;
    int64_t repetitions = 0;
  };
  const AskForSplit ask_;
  std::map<const Dataset*, std::vector<int>> numbers_;
  Mutex mutex_;
  std::map<std::string, Place, std::less<>> places_ ABSL_GUARDED_BY(mutex_);
  std::map<const Dataset*, int> taken_ ABSL_GUARDED_BY(mutex_);
};

bool IsLeftOpen(const tensorflow::NodeDef& n) {
  const auto value = n.attr().find("value");
  if (n.op() != "Const" || value == n.attr().end()) return false;
  const auto t = TensorFromProto(value->second.tensor());
  return t.ok() && t->dtype() == DType::kInt64 && t->num_elements() == 1 &&
         *t->data<int64_t>() == kShardHint;
}

// Puts a worker's numbers in place of those that are left open.
void FillHints(tensorflow::GraphDef* graph, FileShard hint) {
  std::map<std::string, const tensorflow::NodeDef*> by_name;
  for (const auto& n : graph->node()) by_name[n.name()] = &n;
  std::vector<tensorflow::NodeDef> made;
  for (auto& n : *graph->mutable_node()) {
    if (n.op() != "ShardDataset" || n.input_size() < 3) continue;
    const auto count = by_name.find(n.input(1)), at = by_name.find(n.input(2));
    if (count == by_name.end() || at == by_name.end() ||
        !IsLeftOpen(*count->second) || !IsLeftOpen(*at->second)) {
      continue;
    }
    for (int i = 1; i <= 2; ++i) {
      tensorflow::NodeDef number = *(i == 1 ? count : at)->second;
      number.set_name(absl::StrCat(n.name(), "/worker_", i));
      const Tensor t = Tensor::Scalar(i == 1 ? hint.count : hint.index);
      (*number.mutable_attr())["value"].Clear();
      TensorToProto(t, (*number.mutable_attr())["value"].mutable_tensor())
          .IgnoreError();  // a number always is one
      n.set_input(i, number.name());
      made.push_back(std::move(number));
    }
  }
  for (auto& n : made) *graph->add_node() = std::move(n);
}

}  // namespace

StatusOr<DatasetPtr> DatasetOfGraph(const std::string& graph, FileShard hint) {
  tensorflow::GraphDef def;
  if (!def.ParseFromString(graph)) {
    return InvalidArgument("a dataset's graph cannot be read");
  }
  FillHints(&def, hint);
  return ReadDatasetGraph(std::move(def), {});
}

StatusOr<std::vector<int64_t>> CountSources(const std::string& graph) {
  HR_ASSIGN_OR_RETURN(const DatasetPtr dataset, DatasetOfGraph(graph, {}));
  std::vector<DatasetPtr> sources;
  Gather(dataset, &sources);
  std::vector<int64_t> counts;
  for (const DatasetPtr& source : sources) {
    counts.push_back(source->Cardinality());
  }
  return counts;
}

std::shared_ptr<SourceShares> SharesOf(const Dataset& dataset,
                                       AskForSplit ask) {
  return std::make_shared<Shares>(dataset, std::move(ask));
}

}  // namespace headrace::distributed::data_service
