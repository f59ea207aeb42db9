//! Starts nodes, hosts and networks for the tests, and ends them.
