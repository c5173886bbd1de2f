#include "formats/step_stats.h"

#include <chrono>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/step_stats.pb.h"

namespace headrace {
namespace {

// Nanoseconds from the steady clock's beginning to that of 1970, as far as the
// clocks agree now.
int64_t ToWallTime() {
  const auto wall = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::nanoseconds(wall).count() - timeline::Now();
}

constexpr char kAllocator[] = "cpu";

void AddTensors(const std::vector<timeline::MadeTensor>& made,
                tensorflow::NodeExecStats* node) {
  int64_t taken = 0;
  for (size_t i = 0; i < made.size(); ++i) {
    auto* output = node->add_output();
    output->set_slot(static_cast<int>(i));
    auto* tensor = output->mutable_tensor_description();
    tensor->set_dtype(static_cast<tensorflow::DataType>(made[i].dtype));
    auto* shape = tensor->mutable_shape();
    for (int64_t d : made[i].dims) shape->add_dim()->set_size(d);
    auto* memory = tensor->mutable_allocation_description();
    memory->set_requested_bytes(made[i].bytes);
    memory->set_allocated_bytes(made[i].bytes);
    memory->set_allocator_name(kAllocator);
    memory->set_ptr(made[i].address);
    memory->set_has_single_reference(made[i].taken);
    if (made[i].taken) taken += made[i].bytes;
  }
  if (taken == 0) return;
  auto* memory = node->add_memory();
  memory->set_allocator_name(kAllocator);
  memory->set_total_bytes(taken);
  memory->set_peak_bytes(taken);
  memory->set_live_bytes(taken);
}

}  // namespace

void AddStepStats(const std::deque<timeline::Event>& events,
                  tensorflow::StepStats* stats) {
  const int64_t to_wall_time = ToWallTime();
  auto* device = stats->add_dev_stats();
  device->set_device("/job:localhost/replica:0/task:0/device:CPU:0");
  for (const timeline::Event& e : events) {
    if (e.kind != timeline::Event::Kind::kStep) continue;
    auto* node = device->add_node_stats();
    const int64_t took = e.end - e.begin, begin = e.begin + to_wall_time;
    node->set_node_name(e.name);
    node->set_timeline_label(absl::StrCat(e.name, " = ", e.op, "()"));
    node->set_thread_id(e.thread);
    node->set_scheduled_micros(begin / 1000);
    node->set_scheduled_nanos(begin);
    node->set_all_start_micros(begin / 1000);
    node->set_all_start_nanos(begin);
    node->set_op_end_rel_micros(took / 1000);
    node->set_op_end_rel_nanos(took);
    node->set_all_end_rel_micros(took / 1000);
    node->set_all_end_rel_nanos(took);
    AddTensors(e.made, node);
  }
}

}  // namespace headrace
