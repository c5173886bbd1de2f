// Graphs and operations of the C interface.
#pragma once

#include <deque>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "graph/builder.h"
#include "graph/graph.h"
#include "tensorflow/c/c_api.h"

// A node with its graph, which nodes do not know.
struct TF_Operation {
  TF_Graph* graph;
  headrace::Node* node;
};

// Thread-safe by its mutex, which everything holds that reads or changes what
// grows. Sessions count themselves in: the last of them, or TF_DeleteGraph,
// frees it.
struct TF_Graph {
  TF_Graph();

  headrace::Mutex mutex;
  const std::shared_ptr<headrace::Graph> graph;
  headrace::GraphBuilder builder;  // for what makes many nodes
  // The graph whose loop this is a condition or body of: it is no graph for
  // sessions.
  bool is_part = false;

  // Grows when nodes change that were there already, as plans must be made anew
  // then.
  uint64_t changes ABSL_GUARDED_BY(mutex) = 0;
  // Those nodes, in the order of their changes: masters of clusters have them
  // as they were.
  std::vector<const headrace::Node*> changed ABSL_GUARDED_BY(mutex);
  void NoteChange(const headrace::Node* node)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    ++changes;
    changed.push_back(node);
  }

  TF_Operation* OperationOf(headrace::Node* node)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  TF_Output OutputOf(const headrace::Edge& e)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    return {e.node ? OperationOf(e.node) : nullptr, e.index};
  }

  // Who reads an operation's outputs and waits for it, by number of node.
  struct Users {
    std::vector<TF_Input> readers;  // of any output
    std::vector<TF_Operation*> waiting;
  };
  const Users& UsersOf(const headrace::Node* node)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

  // The names of loops that TF_FinishWhile has made.
  std::set<std::string> loop_frames ABSL_GUARDED_BY(mutex);

  void AddSession();
  void RemoveSession();
  void Delete();

 private:
  std::deque<TF_Operation> operations_ ABSL_GUARDED_BY(mutex);  // by node
  std::vector<Users> users_ ABSL_GUARDED_BY(mutex);             // by node
  int users_of_nodes_ ABSL_GUARDED_BY(mutex) = 0;
  uint64_t users_at_change_ ABSL_GUARDED_BY(mutex) = 0;
  int sessions_ ABSL_GUARDED_BY(mutex) = 0;
  bool deleted_ ABSL_GUARDED_BY(mutex) = false;
};

namespace headrace::capi {

// The edge of `graph` that a caller names; InvalidArgument where it has none.
StatusOr<Edge> EdgeOf(const TF_Graph* graph, TF_Output output);
StatusOr<Node*> NodeOf(const TF_Graph* graph, const TF_Operation* oper);
StatusOr<std::vector<Edge>> EdgesOf(const TF_Graph* graph,
                                    const TF_Output* outputs, int count);
StatusOr<std::vector<Node*>> NodesOf(const TF_Graph* graph,
                                     const TF_Operation* const* opers,
                                     int count);
// Whether a list of so many places is there.
Status CheckList(const void* list, int count, StringView what);

}  // namespace headrace::capi
