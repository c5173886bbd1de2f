// A part of a graph that was cut, for tests: what it takes from another device
// and what it gives.
#pragma once

#include <string>
#include <vector>

#include "graph/builder.h"
#include "gtest/gtest.h"
#include "op/registry.h"
#include "runtime/executable.h"
#include "runtime/rendezvous.h"

namespace headrace {

inline constexpr char kPs[] = "/job:ps/replica:0/task:0/device:CPU:0";
inline constexpr char kWorker[] = "/job:worker/replica:0/task:1/device:CPU:0";

inline RendezvousKey KeyOf(const char* edge, const char* from = kPs,
                           const char* to = kWorker) {
  DeviceName source, destination;
  EXPECT_TRUE(DeviceName::Parse(from, &source));
  EXPECT_TRUE(DeviceName::Parse(to, &destination));
  return RendezvousKey::Of(source, 0x977357710510b532, destination, edge);
}

inline SentValue Sent(float x) { return {Tensor::Scalar<float>(x), false}; }

// A graph with ends of edges.
struct Cut {
  Cut() : builder(std::make_shared<Graph>(), GraphBuilder::Kind::kPlain) {}

  AttrMap Attrs(const char* type, const char* edge, bool sends) {
    return {
        {type, DType::kFloat},
        {"tensor_name", edge},
        {"send_device", sends ? kWorker : kPs},
        {"recv_device", sends ? kPs : kWorker},
        {"send_device_incarnation", static_cast<int64_t>(0x977357710510b532)}};
  }
  Edge Recv(const char* edge, bool alive) {
    AttrMap attrs = Attrs("tensor_type", edge, false);
    if (alive) attrs.Set("_alive", true);
    return Add("_Recv", {}, attrs);
  }
  // Of a shape that is known.
  Edge RecvScalar(const char* edge) {
    AttrMap attrs = Attrs("tensor_type", edge, false);
    attrs.Set("_alive", true);
    attrs.Set("_output_shapes", std::vector<Shape>{Shape{}});
    return Add("_Recv", {}, attrs);
  }
  Node* Send(const char* edge, Edge x) {
    return Add("_Send", {x}, Attrs("T", edge, true)).node;
  }
  Edge Add(const char* op, std::vector<Edge> in, const AttrMap& attrs) {
    std::vector<DType> types;
    for (const Edge& e : in) types.push_back(e.node->output_type(e.index));
    auto resolved = ResolveOp(*FindOp(op), types, attrs);
    EXPECT_TRUE(resolved.ok()) << resolved.status();
    auto node = graph().AddNode(graph().UniqueName(op), *resolved, in);
    EXPECT_TRUE(node.ok()) << node.status();
    return {*node, 0};
  }
  Graph& graph() { return *builder.graph(); }

  Status Run(std::vector<Node*> targets, Rendezvous* r) {
    auto e = Executable::Make(graph(), {}, {}, targets, nullptr);
    HR_RETURN_IF_ERROR(e.status());
    RunServices services;
    const RendezvousScope meeting(r);
    std::vector<Tensor> out;
    return (*e)->Run(services, {}, &out);
  }

  GraphBuilder builder;
};

inline float Got(LocalRendezvous& r, const char* edge) {
  SentValue value;
  const auto there = r.TryReceive(KeyOf(edge, kWorker, kPs), &value);
  if (!there.ok() || !*there) return -1;
  return value.dead ? -2 : value.tensor.scalar<float>();
}

}  // namespace headrace
