// Package tpcc is the TPC-C workload on Rekindle: the nine tables, the
// generator of the initial database, the five transactions with the standard's
// mix, and its consistency conditions as checks.
//
// Section numbers in comments are those of the TPC Benchmark C Standard
// Specification, revision 5.11. What differs from it, and why:
//
//   - Money is whole cents and rates are basis points (1/100 of a percent), so
//     that the consistency conditions are exact comparisons.
//   - HISTORY has a primary key, which the standard leaves out: the customer
//     and the number of the payment (C_PAYMENT_CNT after it), which is unique
//     because the payment updates the customer.
//   - Terminals do not key in and do not think (5.2.5), so the rate of
//     new-orders is "tpmC-like" and must not be called tpmC.
//   - Delivery runs at once and as one transaction for all districts of its
//     warehouse (2.7.2 has it queued; one transaction is one of the choices
//     that 2.7.4.2 leaves open).
//   - A Scale below Full shrinks the tables; TPC-C knows only Full.
//
// Snapshot isolation is enough: TPC-C is known to be serializable under it
// (Fekete et al., "Making Snapshot Isolation Serializable", TODS 30(2), 2005).
package tpcc
