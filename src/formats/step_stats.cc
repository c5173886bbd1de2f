#include "formats/step_stats.h"

#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/step_stats.pb.h"

namespace headrace {

void AddStepStats(const std::deque<timeline::Event>& events,
                  tensorflow::StepStats* stats) {
  auto* device = stats->add_dev_stats();
  device->set_device("/job:localhost/replica:0/task:0/device:CPU:0");
  for (const timeline::Event& e : events) {
    if (e.kind != timeline::Event::Kind::kStep) continue;
    auto* node = device->add_node_stats();
    const int64_t took = e.end - e.begin;
    node->set_node_name(e.name);
    node->set_timeline_label(absl::StrCat(e.name, " = ", e.op, "()"));
    node->set_thread_id(e.thread);
    node->set_all_start_micros(e.begin / 1000);
    node->set_all_start_nanos(e.begin);
    node->set_op_end_rel_micros(took / 1000);
    node->set_op_end_rel_nanos(took);
    node->set_all_end_rel_micros(took / 1000);
    node->set_all_end_rel_nanos(took);
  }
}

}  // namespace headrace
