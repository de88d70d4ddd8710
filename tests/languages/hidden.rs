//! Programs whose file is not simply there: stripped, deleted, or in another mount namespace.
