// A worker of a cluster in C++, beside workers of C++ or Python.
//
//   cluster_worker ring [--steps N]
//       trains a small network in step with all other workers, which TF_CONFIG
//       names; each has rows of its own. Prints the weights.
//   cluster_worker servers --graph FILE --train OP --feed X=ROW ... TARGET
