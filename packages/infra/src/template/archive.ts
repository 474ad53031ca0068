import { ref, type Resources } from "../cloudformation/template.ts";

/** The logical id of the bucket of the archive. */
export const ARCHIVE = "AuditArchiveBucket";

/** The bucket that audit events go to when they expire; it outlives its stack. */
export function archiveResources(): Resources {
  return {
    [ARCHIVE]: {
      Type: "AWS::S3::Bucket",
      Condition: "DeployAuditArchive",
      DeletionPolicy: "RetainExceptOnCreate",
      UpdateReplacePolicy: "Retain",
      Properties: {
        BucketEncryption: {
          ServerSideEncryptionConfiguration: [
            { ServerSideEncryptionByDefault: { SSEAlgorithm: "AES256" } },
          ],
        },
        PublicAccessBlockConfiguration: {
          BlockPublicAcls: true,
          BlockPublicPolicy: true,
          IgnorePublicAcls: true,
          RestrictPublicBuckets: true,
        },
        OwnershipControls: { Rules: [{ ObjectOwnership: "BucketOwnerEnforced" }] },
        LifecycleConfiguration: {
          Rules: [
            {
              Id: "move-to-glacier",
              Status: "Enabled",
              Transitions: [
                {
                  StorageClass: "GLACIER_IR",
                  TransitionInDays: ref("AuditArchiveGlacierTransitionDays"),
                },
              ],
            },
            {
              Id: "drop-unfinished-uploads",
              Status: "Enabled",
              AbortIncompleteMultipartUpload: { DaysAfterInitiation: 7 },
            },
          ],
        },
      },
    },
  };
}
