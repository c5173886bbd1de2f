#include "cc/workers.h"

#include <algorithm>
#include <array>
#include <map>

#include "cc/compose.h"
#include "cc/function_state.h"
#include "cc/replicas.h"
#include "cc/server_state.h"
#include "ops/collective/collective.h"

namespace headrace::tf::internal {
namespace {

// Jobs whose tasks train, as groups sort them.
constexpr std::array<const char*, 3> kTraining = {"chief", "master", "worker"};
// Of a pack of small gradients, where options say nothing.
constexpr int64_t kPackBytes = 1 << 20;

thread_local std::shared_ptr<Workers> current;
// What NumberScope set, and the place of the next number in it.
thread_local std::pair<KeptNumbers*, size_t> kept_numbers;

// The same strategies in the same order everywhere, from 1.
std::atomic<int32_t> next_group{1};

// How a tensor travels: as another dtype that holds all of its values.
struct Travel {
  DType dtype;
  bool bits = false;  // the same bits, told apart otherwise
};
Travel TravelOf(DType dtype) {
  static const std::map<DType, Travel> others = {
      {DType::kBool, {DType::kInt32}},
      {DType::kInt8, {DType::kInt32}},
      {DType::kUint8, {DType::kInt32}},
      {DType::kInt16, {DType::kInt32}},
      {DType::kUint16, {DType::kInt32}},
      {DType::kUint32, {DType::kInt64}},
      {DType::kBfloat16, {DType::kFloat32}},
      {DType::kComplex64, {DType::kFloat32, true}},
      {DType::kComplex128, {DType::kFloat64, true}},
      {DType::kUint64, {DType::kInt64, true}},
  };
  const auto found = others.find(dtype);
  if (found != others.end()) return found->second;
  for (const DType as_it_is : {DType::kFloat16, DType::kFloat32,
                               DType::kFloat64, DType::kInt32, DType::kInt64}) {
    if (dtype == as_it_is) return {dtype};
  }
  Throw(ErrorCode::kUnimplemented,
        absl::StrCat("tensors of ", DTypeName(Core(dtype)),
                     " do not travel between workers"));
}

Tensor AsOther(const Tensor& value, DType dtype, bool bits) {
  if (value.dtype() == dtype) return value;
  return bits ? Op("Bitcast", {value}, {{"type", Core(dtype)}})
              : Cast(value, dtype);
}
Tensor Sent(const Tensor& value) {
  const Travel t = TravelOf(value.dtype());
  return AsOther(value, t.dtype, t.bits);
}
Tensor Back(const Tensor& got, DType dtype) {
  return AsOther(got, dtype, TravelOf(dtype).bits);
}

// Of a tensor whose size is known while it is traced; else -1.
int64_t BytesOf(const Tensor& value) {
  const headrace::Shape shape = Core(value.shape());
  if (!shape.fully_known()) return -1;
  return shape.num_elements() *
         static_cast<int64_t>(DTypeSize(Core(value.dtype())));
}

Tensor Flat(const Tensor& value) { return Reshape(value, {-1}); }

}  // namespace

std::shared_ptr<Workers> CurrentWorkers() { return current; }

WorkersScope::WorkersScope(std::shared_ptr<Workers> workers)
    : outer_(std::exchange(current, std::move(workers))) {
  if (current != nullptr && !current->elastic() &&
      current->size() * current->replicas() == 1) {
    current = nullptr;
  }
}
WorkersScope::~WorkersScope() { current = std::move(outer_); }

NumberScope::NumberScope(KeptNumbers* kept)
    : outer_(std::exchange(kept_numbers, {kept, 0})) {}
NumberScope::~NumberScope() { kept_numbers = outer_; }

Workers::Workers(const distribute::TaskConfig& task,
                 std::optional<distribute::Server> server,
                 const distribute::CommunicationOptions& options, int replicas,
                 bool elastic)
    : replicas_(replicas),
      elastic_(elastic),
      options_(options),
      server_(std::move(server)) {
  if (replicas < 1) {
    Throw(ErrorCode::kInvalidArgument,
          absl::StrCat("a worker has one replica at least, not ", replicas));
  }
  if (options.bytes_per_pack < 0 || !(options.timeout_seconds >= 0)) {
    Throw(
        ErrorCode::kInvalidArgument,
        absl::StrCat("bytes_per_pack and timeout_seconds are not negative, "
                     "and are ",
                     options.bytes_per_pack, " and ", options.timeout_seconds));
  }
  int found = -1, count = 0;
  std::string all;
  for (const char* job : kTraining) {
    if (!task.cluster.HasJob(job)) continue;
    for (const auto& [index, address] : task.cluster.tasks(job)) {
      if (job == task.job && index == task.index) found = count;
      absl::StrAppend(&all, count == 0 ? "" : ", ", job, ":", index);
      tasks_.push_back(DeviceName::OfTask(job, index).ToString());
      ++count;
    }
  }
  if (count <= 1 || task.job == "evaluator") {
    own_ = DeviceName::OfTask("worker", 0).ToString();
    tasks_ = members_ = {own_};
    return;
  }
  if (found < 0) {
    Throw(ErrorCode::kInvalidArgument,
          absl::StrCat(
              "the cluster has several workers (", all, "), and this task is ",
              task.job.empty() ? "not said"
                               : absl::StrCat(task.job, ":", task.index),
              ": TF_CONFIG's \"task\" is to be one of them"));
  }
  own_ = tasks_[found];
  members_ = {own_};
  if (!elastic_) {
    members_ = tasks_;
    size_ = count;
    rank_ = found;
  }
  if (!server_) server_.emplace(task);
  engine_ = server_->state_->task->worker()->engine();
  UseCollectiveEngine(engine_);
  group_ = next_group++;
}

Workers::~Workers() {
  // Another strategy's may have taken its place.
  if (engine_ != nullptr && TheCollectiveEngine() == engine_) {
    UseCollectiveEngine(nullptr);
  }
}

void Workers::Regroup(size_t fewest, double all_within, double timeout) {
  if (engine_ == nullptr) return;
  // Longer than anybody waits.
  constexpr double kMostSeconds = 1e6;
  const auto time = [=](double seconds) {
    return std::chrono::milliseconds(
        static_cast<int64_t>(std::min(seconds, kMostSeconds) * 1e3));
  };
  headrace::distributed::GroupSearch search;
  search.group_key = group_;
  for (const std::string& name : tasks_) {
    DeviceName::Parse(name, &search.tasks.emplace_back());
  }
  search.fewest = fewest;
  search.all_within = time(all_within);
  search.timeout = time(timeout);
  const Generation found = Check(RegroupTask(*server_->state_->task, search));
  members_.clear();
  for (const std::string& device : found.devices()) {
    DeviceName name;
    DeviceName::Parse(device, &name);
    members_.push_back(name.Task().ToString());
  }
  const auto own = std::find(members_.begin(), members_.end(), own_);
  if (own == members_.end()) {
    Throw(ErrorCode::kInternal,
          absl::StrCat("generation ", found.number(), " has no ", own_));
  }
  size_ = static_cast<int>(members_.size());
  rank_ = static_cast<int>(own - members_.begin());
  generation_ = found.number();
  next_ = 1;
  ForgetTraces();
}

Status Workers::End() const {
  if (engine_ == nullptr || generation_ == 0) return OkStatus();
  return server_->state_->task->worker()->collectives()->GroupStatus(group_);
}

void Workers::Leave() {
  if (engine_ == nullptr) return;
  server_->state_->task->worker()->collectives()->Leave(group_);
}

int32_t Workers::NewNumber() {
  auto& [kept, place] = kept_numbers;
  if (kept == nullptr) return next_++;
  if (place == kept->numbers.size()) kept->numbers.push_back(next_++);
  return kept->numbers[place++];
}

void Workers::CheckMayMeet() const {
  if (!InReplica()) return;
  Throw(ErrorCode::kFailedPrecondition,
        "workers do not meet in the code of a replica: have Run give what is "
        "to be summed, and Reduce it");
}

Tensor Workers::Call(const char* op, std::vector<Tensor> given, AttrMap attrs) {
  for (const int32_t number : {size_, group_, NewNumber()}) {
    given.push_back(Int(number));
  }
  // A receiver's shape is its last input.
  if (StringView(op) == "CollectiveBcastRecvV2") {
    std::rotate(given.begin(), given.begin() + 1, given.end());
  }
  attrs.Set("communication_hint", "auto");
  attrs.Set("timeout_seconds", static_cast<float>(options_.timeout_seconds));
  return Op(op, given, attrs);
}

Tensor Workers::Sum(const Tensor& value) {
  CheckMayMeet();
  if (size_ == 1) return value;
  const Tensor sent = Sent(value);
  return Back(
      Call(
          "CollectiveReduceV2", {sent},
          {{"T", Core(sent.dtype())}, {"merge_op", "Add"}, {"final_op", "Id"}}),
      value.dtype());
}

Tensor Workers::Gathered(const Tensor& value) {
  return Call("CollectiveGatherV2", {value}, {{"T", Core(value.dtype())}});
}

Tensor Workers::Rows(const Tensor& value) {
  CheckMayMeet();
  if (size_ == 1) return value;
  const TensorShape shape = value.shape();
  if (!shape.known_rank || shape.rank() == 0) {
    Throw(ErrorCode::kInvalidArgument,
          "rows of workers are gathered of tensors with a known rank of at "
          "least 1");
  }
  const Tensor sent = Sent(value);
  const Tensor own = ShapeOf(sent);
  const Tensor all = Gathered(Op("ExpandDims", {own, Int(0)}));
  const Tensor counts = Op("GatherV2", {all, Int(0), Int(1)});
  const Tensor count = Op("GatherV2", {own, Int(0), Int(0)});
  const Tensor longest = Reduce("Max", counts, {0});
  // Padded behind the rows of this worker, so that all have one shape.
  const int rank = sent.shape().rank();
  std::vector<Tensor> paddings(static_cast<size_t>(rank) * 2, Int(0));
  paddings[1] = longest - count;
  const Tensor flat =
      Op("Pack", paddings, {{"N", static_cast<int64_t>(paddings.size())}});
  const Tensor padded = Gathered(Op("Pad", {sent, Reshape(flat, {rank, 2})}));
  std::vector<Tensor> parts;
  for (int w = 0; w < size_; ++w) {
    const Tensor begin = Int(w) * longest;
    const Tensor behind = Op("GatherV2", {counts, Int(w), Int(0)});
    parts.push_back(
        Op("GatherV2",
           {padded, Op("Range", {begin, begin + behind, Int(1)}), Int(0)}));
  }
  parts.push_back(Int(0));
  const Tensor rows =
      Op("ConcatV2", parts, {{"N", static_cast<int64_t>(size_)}});
  return Back(rows, value.dtype());
}

Tensor Workers::Of(int rank, const Tensor& value) {
  if (size_ == 1) return value;
  const Tensor sent = Sent(value);
  const AttrMap attrs = {{"T", Core(sent.dtype())}};
  const Tensor got =
      rank_ == rank ? Call("CollectiveBcastSendV2", {sent}, attrs)
                    : Call("CollectiveBcastRecvV2", {ShapeOf(sent)}, attrs);
  return Back(got, value.dtype());
}

void Workers::Tell(const Variable& variable) {
  if (size_ == 1 || elastic_) return;
  const Outside outside;
  // What is told once has no number in a body that is traced anew.
  const NumberScope fresh(nullptr);
  variable.assign(OfFirst(variable.value()));
}

void Workers::SumVariables(const Module& of) {
  if (size_ == 1) return;
  for (const Variable& v : of.variables()) v.assign(Sum(v.value()));
}

Gradient Workers::SumSlices(const Gradient& slices) {
  const Tensor values = Rows(slices.values());
  return Gradient(values, Rows(slices.indices()), slices.dense_shape());
}

// Small tensors of one dtype go together, the last ones first, whose gradients
// are there first.
Gradients Workers::SumAll(const Gradients& gradients) {
  CheckMayMeet();
  if (size_ == 1) return gradients;
  const int64_t limit =
      options_.bytes_per_pack > 0 ? options_.bytes_per_pack : kPackBytes;
  Gradients found = gradients;
  std::vector<size_t> pack;
  int64_t bytes = 0;
  const auto send = [&] {
    if (pack.size() == 1) {
      found[pack[0]] = Sum(gradients[pack[0]].dense());
    } else if (!pack.empty()) {
      std::vector<Tensor> flat;
      std::vector<int64_t> sizes;
      for (const size_t i : pack) {
        flat.push_back(Flat(gradients[i].dense()));
        sizes.push_back(gradients[i].dense().num_elements());
      }
      const auto n = static_cast<int64_t>(flat.size());
      flat.push_back(Int(0));
      const Tensor total = Sum(Op("ConcatV2", flat, {{"N", n}}));
      const std::vector<Tensor> parts =
          OpAll("SplitV", {total, Ints(sizes), Int(0)}, {{"num_split", n}});
      for (size_t k = 0; k < pack.size(); ++k) {
        const TensorShape shape = gradients[pack[k]].dense().shape();
        found[pack[k]] = Reshape(parts[k], shape.dims);
      }
    }
    pack.clear();
    bytes = 0;
  };
  for (size_t i = gradients.size(); i-- > 0;) {
    const Gradient& g = gradients[i];
    if (!g) continue;
    if (g.is_slices()) {
      found[i] = SumSlices(g);
      continue;
    }
    const int64_t own = BytesOf(g.dense());
    if (own < 0 || own > limit) {
      found[i] = Sum(g.dense());
      continue;
    }
    if (!pack.empty() &&
        (bytes + own > limit ||
         gradients[pack[0]].dense().dtype() != g.dense().dtype())) {
      send();
    }
    pack.push_back(i);
    bytes += own;
  }
  send();
  return found;
}

}  // namespace headrace::tf::internal
